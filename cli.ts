/** Entry point of the command line: the table of all commands. */
import { adminCommands } from "./mod/cli/admin_commands.ts";
import { backupCommand } from "./mod/cli/backup_command.ts";
import { deployCommands } from "./mod/cli/deploy/deploy_command.ts";
import { deployKeyCommands, envCommands } from "./mod/cli/deploy/deploy_key_commands.ts";
import { doctorCommand } from "./mod/cli/doctor/doctor_command.ts";
import { exportCommand } from "./mod/cli/export_command.ts";
import { logsCommand } from "./mod/cli/logs_command.ts";
import { importCommand } from "./mod/cli/import/import_command.ts";
import { migrateCommand } from "./mod/cli/deploy/migrate_command.ts";
import { exitOnBug, runProgram } from "./mod/cli/program.ts";
import { replicaVerifyCommand } from "./mod/cli/replica_command.ts";
import { restoreCommand } from "./mod/cli/restore_command.ts";
import { runCommand } from "./mod/cli/run_command.ts";
import { serveCommand } from "./mod/cli/serve_command.ts";
import { serviceCommand } from "./mod/cli/service/service_command.ts";
import { userCommands } from "./mod/cli/user_commands.ts";

const commands = [
  serveCommand,
  backupCommand,
  restoreCommand,
  replicaVerifyCommand,
  importCommand,
  exportCommand,
  logsCommand,
  doctorCommand,
  ...adminCommands,
  ...userCommands,
  runCommand,
  ...deployCommands,
  ...deployKeyCommands,
  ...envCommands,
  migrateCommand,
  serviceCommand,
];

exitOnBug();
Deno.exit(await runProgram(commands, Deno.args));
