/** Scheduled backups. */
export { BackupTarget } from "./backup_target.ts";
export { BACKUP_PATH, backupActions, ScheduledBackups } from "./scheduled_backups.ts";
