/** Backups: archives of a data folder, made by hand, on a schedule and over HTTP. */
export type { BackupSummary } from "./backup.ts";
export { BackupError } from "./backup_error.ts";
export { BackupCounts } from "./backup_counts.ts";
export { BackupFolder } from "./backup_folder.ts";
export { Backups, type MakeBackup } from "./backups.ts";

/** See `backup.ts`: with the engine and what packs archives it is loaded when it is needed. */
export const createBackup: typeof import("./backup.ts").createBackup = async (...args) => {
  const backup = await import("./backup.ts");
  return await backup.createBackup(...args);
};
