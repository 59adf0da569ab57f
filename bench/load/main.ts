/** The load process: runs the commands it reads from standard input, one after the other, until the input ends. */
import { lines } from "../../tests/support/processes/lines.ts";
import { print } from "../support/print.ts";
import { commands, type LoadAnswer } from "./commands.ts";

async function answer(line: string): Promise<LoadAnswer> {
  try {
    const { command, options } = JSON.parse(line);
    const run = (commands as unknown as Record<string, (options: unknown) => unknown>)[command];
    if (run === undefined) throw new Error(`Unknown command "${command}"`);
    return { result: await run(options) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

for await (const line of lines(Deno.stdin.readable)) print(JSON.stringify(await answer(line)));
Deno.exit(0);
