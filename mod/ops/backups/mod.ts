/** Backups of a data folder: manual, scheduled and over HTTP. */
export type { BackupSummary } from "./backup.ts";
export { BackupError } from "./backup_error.ts";
export { BackupCounts, Backups, type MakeBackup } from "./backups.ts";
export { BackupFolder } from "./backup_folder.ts";

/** See `backup.ts`, which is loaded on demand. */
export const createBackup: typeof import("./backup.ts").createBackup = async (...args) => {
  const backup = await import("./backup.ts");
  return await backup.createBackup(...args);
};
