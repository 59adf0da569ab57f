/** The command line: a table of commands, no logic. */
import { adminCommands } from "./mod/server/admin_commands.ts";
import { exitOnBug, runProgram } from "./mod/server/program.ts";
import { serveCommand } from "./mod/server/serve_command.ts";

const commands = [serveCommand, ...adminCommands];

if (Deno.args[0] === "isolate") {
  // A compiled program starts itself again for each isolate; nobody types this.
  await import("./mod/server/isolate_entry.ts");
} else {
  exitOnBug();
  Deno.exit(await runProgram(commands, Deno.args));
}
