/** The command `run`: runs a public or internal function on a running server, without an identity. */
import { StartError } from "../config/start_error.ts";
import type { CommandSpec } from "./command_line.ts";
import { withRunningServer } from "./running_server.ts";

/** The result as reported by the server. */
interface RunReport {
  readonly result:
    | { readonly ok: true; readonly value: unknown }
    | { readonly ok: false; readonly error: { readonly message: string; readonly stack?: string } };
  readonly logLines: readonly string[];
}

export const runCommand: CommandSpec = {
  name: "run",
  description: "Run a function on a running server and print its result",
  argument: { name: "path", description: "Path of the function, such as messages:list" },
  second: { name: "json", description: "Its arguments as a JSON object", optional: true },
  run: ({ data }, path, _given, json) =>
    withRunningServer(data, async (call) => {
      const run = await call("_admin/functions:run", { path, args: parsedArgs(json) }) as RunReport;
      for (const line of run.logLines) await Deno.stderr.write(new TextEncoder().encode(`${line}\n`));
      const { result } = run;
      if (result.ok) return JSON.stringify(result.value, null, 2);
      const { message, stack } = result.error;
      throw new StartError(stack === undefined ? message : `${message}\n${stack}`);
    }),
};

function parsedArgs(json: string): Record<string, unknown> {
  if (json === "") return {};
  let args: unknown;
  try {
    args = JSON.parse(json);
  } catch (error) {
    throw new StartError(
      `The arguments are not valid JSON: ${error instanceof Error ? error.message : error}`,
    );
  }
  if (typeof args === "object" && args !== null && !Array.isArray(args)) {
    return args as Record<string, unknown>;
  }
  throw new StartError('The arguments have to be a JSON object, such as \'{"channel":"general"}\'');
}
