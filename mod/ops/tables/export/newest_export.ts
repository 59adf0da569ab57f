/**
 * Exports tables and files of a data folder, retrying with a newer snapshot if a file was created and deleted just while the
 * snapshot was taken.
 */
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { blobsIn } from "../../backups/snapshot/stored_files.ts";
import { opsLimits } from "../../limits.ts";
import { MissingFileError } from "./export_error.ts";
import { exportFiles, type ExportFilesOptions, type ExportSummary } from "./export_files.ts";

export interface NewestExportOptions extends ExportFilesOptions {
  readonly databasePath: string;
  /** Opens a snapshot of the database. */
  readonly open: () => Promise<ExportSnapshot>;
}

/** Like `exportFiles`, but retries a few times if missing files are no longer referenced by the database. */
export async function exportNewest(options: NewestExportOptions): Promise<ExportSummary> {
  const { databasePath, open, signal } = options;
  for (let attempt = 1;; attempt++) {
    signal?.throwIfAborted();
    using snapshot = await open();
    try {
      return await exportFiles(snapshot, options);
    } catch (error) {
      if (!(error instanceof MissingFileError) || attempt >= opsLimits.snapshotAttemptsMax) throw error;
      if (isNamed(error.blob, databasePath)) throw error;
    }
  }
}

/** Whether the current database references a blob. */
function isNamed(blob: string, databasePath: string): boolean {
  for (const named of blobsIn(databasePath)) if (named === blob) return true;
  return false;
}
