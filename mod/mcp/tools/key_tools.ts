/** Tools for programs with an API key: the functions that the key may call, as a client of the app. */
import { z } from "zod";
import { refuseKey } from "../../functions/key_scope.ts";
import { type FunctionFacts, functionTools } from "./function_tools.ts";
import { operationTools } from "./operation_tools.ts";
import { type McpCaller, readTool, type Tool, writeTool } from "./tool.ts";

const runArgs = z.strictObject({
  path: z.string().describe("Path of the function, such as tasks:list"),
  args: z.record(z.string(), z.unknown()).default({}),
});

function runTool(kind: "query" | "mutation" | "action", description: string): Tool {
  const define = kind === "query" ? readTool : writeTool;
  return define({
    name: `run_${kind}`,
    description,
    args: runArgs,
    noted: ["path", "args"],
    run: ({ path, args }, { callAsKey }, caller) => callAsKey(keyOf(caller), { kind, path, args }),
  });
}

const listed: Tool = {
  ...functionTools.find(({ name }) => name === "list_functions") as Tool,
  description:
    "List the functions that this API key may call, with the JSON Schemas of their arguments and results.",
};

export const keyTools: readonly Tool[] = [
  {
    ...listed,
    async run(args, sources, caller) {
      const { identity } = keyOf(caller);
      const all = await listed.run(args, sources, caller) as readonly FunctionFacts[];
      return all.filter(({ path, kind, visibility }) =>
        visibility === "public" && refuseKey(identity, kind, path) === null
      );
    },
  },
  runTool("query", "Run a query of the app and return its result."),
  runTool("mutation", "Run a mutation of the app. It changes data."),
  runTool("action", "Run an action of the app. It may change data and call other services."),
  ...operationTools.filter(({ name }) => name === "read_documentation"),
];

function keyOf({ key }: McpCaller): NonNullable<McpCaller["key"]> {
  if (key === undefined) throw new TypeError("The caller has no API key");
  return key;
}
