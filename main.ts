/** The server's entry: `serve` with the options given. */
import { exitOnBug, runProgram } from "./mod/server/program.ts";
import { serveCommand } from "./mod/server/serve_command.ts";

exitOnBug();
Deno.exit(await runProgram([serveCommand], ["serve", ...Deno.args]));
