/** Tools for the app's functions. */
import { z } from "zod";
import { type McpSources, readTool, type Tool, writeTool } from "./tool.ts";

/** A function, as `list_functions` shows it. */
export interface FunctionFacts {
  readonly path: string;
  readonly kind: "query" | "mutation" | "action";
  readonly visibility: string;
  readonly args: unknown;
  readonly returns: unknown;
}

const runArgs = z.strictObject({
  path: z.string().describe("Path of the function, such as tasks:list"),
  args: z.record(z.string(), z.unknown()).default({}),
  asUser: z.string().optional().describe("ID of the user on whose behalf it runs; default: signed out"),
});

/** The parts that the tools for running functions have in common. */
function runsOf(kind: "query" | "mutation" | "action") {
  return {
    args: runArgs,
    noted: ["path", "args", "asUser"],
    run: ({ path, args, asUser }: z.output<typeof runArgs>, { call }: McpSources): Promise<unknown> => {
      const as = asUser === undefined ? null : { userId: asUser };
      return call("_admin/functions:run", { path, args, as, kind });
    },
  } as const;
}

export const functionTools: readonly Tool[] = [
  readTool({
    name: "list_functions",
    description: "List the app's functions with the JSON Schemas of their arguments and results. Public " +
      "functions can be called by clients, internal ones by other functions only.",
    args: z.strictObject({
      prefix: z.string().optional().describe("Beginning of the paths, such as tasks:"),
      kind: z.enum(["query", "mutation", "action"]).optional(),
    }),
    noted: ["prefix", "kind"],
    async run({ prefix = "", kind }, { call }) {
      const functions = await call("_admin/functions:list", {}) as readonly (FunctionFacts & {
        readonly ofService: boolean;
      })[];
      return functions
        .filter((each) =>
          !each.ofService && each.path.startsWith(prefix) && (kind ?? each.kind) === each.kind
        )
        .map(({ path, kind, visibility, args, returns }) => ({ path, kind, visibility, args, returns }));
    },
  }),
  readTool({
    name: "run_query",
    description:
      "Run a query of the app, public or internal, and return its result, log lines, duration and " +
      "the tables and indexes that it read.",
    ...runsOf("query"),
  }),
  writeTool({
    name: "run_mutation",
    description: "Run a mutation of the app, public or internal. It changes data.",
    ...runsOf("mutation"),
  }),
  writeTool({
    name: "run_action",
    description: "Run an action of the app, public or internal. It may change data and call other services.",
    ...runsOf("action"),
  }),
];
