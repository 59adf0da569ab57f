/** Scheduled backups. */
export { BACKUP_PATH, backupActions } from "./backup_action.ts";
export type { BackupTarget } from "./backup_target.ts";
export { LazyTarget } from "./later_target.ts";
export { openFolder } from "./other_folder.ts";
export { ScheduledBackups } from "./scheduled_backups.ts";
