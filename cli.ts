/** The command line: a table of commands, no logic. */
import { adminCommands } from "./mod/server/admin_commands.ts";
import { backupCommand } from "./mod/server/backup_command.ts";
import { exportCommand } from "./mod/server/export_command.ts";
import { importCommand } from "./mod/server/import_command.ts";
import { exitOnBug, runProgram } from "./mod/server/program.ts";
import { restoreCommand } from "./mod/server/restore_command.ts";
import { serveCommand } from "./mod/server/serve_command.ts";

const commands = [
  serveCommand,
  backupCommand,
  restoreCommand,
  importCommand,
  exportCommand,
  ...adminCommands,
];

exitOnBug();
Deno.exit(await runProgram(commands, Deno.args));
