/** The commands of the program. */
import { adminCommands } from "./admin_commands.ts";
import { apiKeyCommands, deployKeyCommands } from "./api_key_commands.ts";
import { backupCommand } from "./backup_command.ts";
import type { CommandSpec } from "./command_line.ts";
import { deployCommands } from "./deploy/deploy_command.ts";
import { envCommands } from "./deploy/env_commands.ts";
import { migrateCommand } from "./deploy/migrate_command.ts";
import { doctorCommand } from "./doctor_command.ts";
import { exportCommand } from "./export_command.ts";
import { importCommand } from "./import_command.ts";
import { logsCommand } from "./logs_command.ts";
import { mcpCommand } from "./integrations/mcp_command.ts";
import { openApiCommand } from "./integrations/openapi_command.ts";
import { replicaVerifyCommand } from "./replica_command.ts";
import { restoreCommand } from "./restore_command.ts";
import { runCommand } from "./run_command.ts";
import { serveCommand } from "./serve_command.ts";
import { serviceCommand } from "./service_command.ts";
import { userCommands } from "./user_commands.ts";

/** Every command, in the order of `--help`. */
export const commands: readonly CommandSpec[] = [
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
  openApiCommand,
  mcpCommand,
  ...deployCommands,
  ...deployKeyCommands,
  ...apiKeyCommands,
  ...envCommands,
  migrateCommand,
  serviceCommand,
];
