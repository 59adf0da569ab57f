/** Restores as whoever takes the data folder meets them: applied or finished before anything is opened. */
import type { Log } from "../../kit/log.ts";
import {
  type AppliedRestore,
  applyStagedRestore,
  finishInterruptedRestore,
  RestoreError,
  stagedRestore,
} from "../../ops/backups/restore/mod.ts";
import { fileErrorReason, StartError } from "../../config/start_error.ts";

/**
 * What is done with a restore when a data folder is taken: `apply` one that is staged; `finish` one only that a crash
 * interrupted, so that the folder is whole; `leave` both.
 */
export type RestoreStep = "apply" | "finish" | "leave";

/** Throws a `StartError` that says how to go on when the restore cannot be applied. */
export async function applyRestore(dataDir: string, step: RestoreStep): Promise<AppliedRestore | null> {
  try {
    switch (step) {
      case "apply":
        return await applyStagedRestore(dataDir, new Date());
      case "finish":
        return await finishInterruptedRestore(dataDir);
      case "leave":
        return null;
      default:
        return step satisfies never;
    }
  } catch (error) {
    const reason = error instanceof RestoreError ? error.message : fileErrorReason(error);
    throw new StartError(
      `Cannot apply the restore that is staged in "${dataDir}": ${reason}. Put that right and start again, or cancel ` +
        `the restore with: restore --cancel --data "${dataDir}"`,
      { code: "restore", cause: error },
    );
  }
}

/**
 * For whoever is about to write `lost`, which would go with the next start, because that applies the restore. Throws a
 * `StartError` when one is staged.
 */
export async function refuseStaged(dataDir: string, lost: string): Promise<void> {
  const staged = await stagedRestore(dataDir);
  if (staged === null) return;
  throw new StartError(
    `A restore of "${staged.source}" is staged in "${dataDir}", and the next start would put it in the place of ${lost}: ` +
      `start the server once, or cancel it with: restore --cancel --data "${dataDir}"`,
    { code: "restore" },
  );
}

/** A restore would take the cluster's data from a server. Throws a `StartError` when one is staged, or cannot be read. */
export async function refuseStagedInCluster(dataDir: string): Promise<void> {
  const staged = await stagedRestore(dataDir).catch((error) => {
    throw new StartError(`Cannot read which restore is staged in "${dataDir}": ${fileErrorReason(error)}`, {
      code: "restore",
      cause: error,
    });
  });
  if (staged === null) return;
  throw new StartError(
    `A restore of "${staged.source}" is staged in "${dataDir}", and a server of a cluster cannot be restored: cancel it with: ` +
      `restore --cancel --data "${dataDir}", or restore into an empty folder and make another cluster of that`,
    { code: "cluster" },
  );
}

/** Tells in the log what a start has restored, and where the files are that it replaced. */
export function logRestore(log: Log, restore: AppliedRestore): void {
  log("info", `Restored the backup "${restore.source}" of ${restore.createdAt}`, {
    ts: restore.ts,
    tables: restore.tables,
    documents: restore.documents,
    parts: restore.parts.join(", "),
    ...(restore.keptIn !== null && { replacedFilesAreIn: restore.keptIn }),
  });
}
