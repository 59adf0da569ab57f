/**
 * Tables and files of a data folder, from a state whose files are all there: one that came and went at the moment in which a
 * state was taken is in no newer one.
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

/** As `exportFiles`, which begins again with a newer snapshot, a few times, when files went that the database names no more. */
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

/** Whether the database as it is now names a blob. */
function isNamed(blob: string, databasePath: string): boolean {
  for (const named of blobsIn(databasePath)) if (named === blob) return true;
  return false;
}
