/** Entry point of the command line. */
import { commands } from "./mod/cli/commands.ts";
import { exitOnBug, runProgram } from "./mod/cli/program.ts";

exitOnBug();
Deno.exit(await runProgram(commands, Deno.args));
