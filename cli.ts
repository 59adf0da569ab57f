/** The command line: a table of commands, no logic. */
import { adminCommands } from "./mod/server/admin_commands.ts";
import { exitOnBug, runProgram } from "./mod/server/program.ts";
import { serveCommand } from "./mod/server/serve_command.ts";

const commands = [serveCommand, ...adminCommands];

// A compiled program starts itself again for each isolate and for the thumbnails; nobody types these two.
if (Deno.args[0] === "isolate") {
  await import("./mod/server/isolate_entry.ts");
} else if (Deno.args[0] === "images") {
  const { runImageProcess } = await import("./mod/storage/thumbnails/process.ts");
  await runImageProcess();
  Deno.exit(0);
} else {
  exitOnBug();
  Deno.exit(await runProgram(commands, Deno.args));
}
