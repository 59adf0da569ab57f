/** Handles staged and interrupted restores before anything in a data folder is opened. */
import type { Log } from "../../kit/log.ts";
import {
  type AppliedRestore,
  applyStagedRestore,
  finishInterruptedRestore,
  RestoreError,
  stagedRestore,
} from "../../ops/backups/restore/mod.ts";
import { fileErrorReason, StartError } from "../../config/start_error.ts";

/** `apply` a staged restore; `finish` one that a crash interrupted; `leave` both as they are. */
export type RestoreStep = "apply" | "finish" | "leave";

/** Throws a `StartError` if the restore cannot be applied. */
export async function handleRestore(dataDir: string, step: RestoreStep): Promise<AppliedRestore | null> {
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
      `Cannot apply the restore staged in "${dataDir}": ${reason}. Fix the problem and start again, or cancel ` +
        `the restore with: restore --cancel --data "${dataDir}"`,
      { code: "restore", cause: error },
    );
  }
}

/** Throws a `StartError` if a restore is staged: the next start would replace `lost`, which the caller is about to write. */
export async function checkNoStagedRestore(dataDir: string, lost: string): Promise<void> {
  const staged = await stagedRestore(dataDir);
  if (staged === null) return;
  throw new StartError(
    `A restore of "${staged.source}" is staged in "${dataDir}". The next start would replace ${lost}: ` +
      `start the server once, or cancel the restore with: restore --cancel --data "${dataDir}"`,
    { code: "restore" },
  );
}

/** Throws a `StartError` if a restore is staged: servers of a cluster cannot be restored. */
export async function checkNoStagedRestoreInCluster(dataDir: string): Promise<void> {
  const staged = await stagedRestore(dataDir).catch((error) => {
    throw new StartError(`Cannot read the restore staged in "${dataDir}": ${fileErrorReason(error)}`, {
      code: "restore",
      cause: error,
    });
  });
  if (staged === null) return;
  throw new StartError(
    `A restore of "${staged.source}" is staged in "${dataDir}", but a server of a cluster cannot be restored. Cancel it with: ` +
      `restore --cancel --data "${dataDir}", or restore into an empty folder and create a new cluster from it`,
    { code: "cluster" },
  );
}

/** Logs what was restored and where the replaced files are. */
export function logRestore(log: Log, restore: AppliedRestore): void {
  log("info", `Restored the backup "${restore.source}" of ${restore.createdAt}`, {
    ts: restore.ts,
    tables: restore.tables,
    documents: restore.documents,
    parts: restore.parts.join(", "),
    ...(restore.keptIn !== null && { replacedFilesAreIn: restore.keptIn }),
  });
}
