/** Entry point of the server: runs `serve` with the given options. */
import { exitOnBug, runProgram } from "./mod/cli/program.ts";
import { serveCommand } from "./mod/cli/serve_command.ts";

exitOnBug();
Deno.exit(await runProgram([serveCommand], ["serve", ...Deno.args]));
