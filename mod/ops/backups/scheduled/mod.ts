/** Backups on a schedule. */
export { BACKUP_PATH, backupActions } from "./backup_action.ts";
export type { BackupTarget } from "./backup_target.ts";
export { FolderTarget } from "./folder_target.ts";
export { ScheduledBackups } from "./scheduled_backups.ts";
