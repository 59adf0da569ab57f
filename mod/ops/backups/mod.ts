/** Backups: archives of a data folder, made by hand, on a schedule and over HTTP. */
export { type BackupSummary, createBackup } from "./backup.ts";
export { BackupError } from "./backup_error.ts";
export { BackupCounts } from "./backup_counts.ts";
export { BackupFolder } from "./backup_folder.ts";
export { Backups, type MakeBackup } from "./backups.ts";
