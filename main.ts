/** The server's entry: `serve` with the options given. */
import { exitOnBug, runProgram } from "./mod/cli/program.ts";
import { serveCommand } from "./mod/cli/serve_command.ts";

exitOnBug();
Deno.exit(await runProgram([serveCommand], ["serve", ...Deno.args]));
