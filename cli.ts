/** The command line: a table of commands, no logic. */
import { adminCommands } from "./mod/server/admin_commands.ts";
import { exitOnBug, runProgram } from "./mod/server/program.ts";
import { serveCommand } from "./mod/server/serve_command.ts";

const commands = [serveCommand, ...adminCommands];

exitOnBug();
Deno.exit(await runProgram(commands, Deno.args));
