/** Staged and interrupted restores, replaced databases, and unfinished imports of a data folder. */
import { join } from "node:path";
import { fileErrorReason, StartError } from "../../config/start_error.ts";
import { removeIfThere, statIfThere, syncFolder, writeDurably } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import {
  type AppliedRestore,
  applyStagedRestore,
  finishInterruptedRestore,
  KEPT_PREFIX,
  RestoreError,
  stagedRestore,
} from "../../ops/backups/restore/mod.ts";

/** Modification time of the newest one in milliseconds since the epoch; `null` if there is none. */
export async function newestReplacedDatabase(dataDir: string): Promise<number | null> {
  let newest: number | null = null;
  for await (const { name, isDirectory } of Deno.readDir(dataDir)) {
    if (!isDirectory || !name.startsWith(KEPT_PREFIX)) continue;
    const info = await statIfThere(join(dataDir, name));
    const at = info?.mtime?.getTime();
    if (at !== undefined) newest = Math.max(newest ?? at, at);
  }
  return newest;
}

/** Exists while an import into an empty folder runs. After a killed import, only another import accepts the folder. */
const MARK = "import-unfinished";
const STORAGE = "storage";

/** Throws a `StartError` if the folder contains an unfinished import. */
export async function checkNoUnfinishedImport(dataDir: string): Promise<void> {
  if (await statIfThere(join(dataDir, MARK)) === null) return;
  throw new StartError(
    `An import into "${dataDir}" was interrupted and its data is incomplete. Import again, or remove the folder`,
  );
}

/** Removes the data of an interrupted import. The caller holds the lock. */
export async function removeUnfinishedImport(dataDir: string): Promise<void> {
  if (await statIfThere(join(dataDir, MARK)) !== null) await removeMade(dataDir);
}

/** Creates data, and removes it if `make` fails. Throws a `StartError` if the folder has uploaded files. */
export async function createImportedData<Made>(dataDir: string, make: () => Promise<Made>): Promise<Made> {
  await refuseFiles(dataDir);
  await writeDurably(join(dataDir, MARK), "An import into this folder is running or was interrupted.\n");
  let made: Made;
  try {
    made = await make();
  } catch (error) {
    await removeMade(dataDir);
    throw error;
  }
  await removeMark(dataDir);
  return made;
}

async function refuseFiles(dataDir: string): Promise<void> {
  const folder = join(dataDir, STORAGE);
  if (await statIfThere(folder) === null) return;
  for await (const _entry of Deno.readDir(folder)) {
    throw new StartError(
      `"${dataDir}" has no database, but there are files in "${folder}". Pass a new folder with --data`,
      { code: "import" },
    );
  }
}

/** Removes the marker last, after the removals are durable. */
async function removeMade(dataDir: string): Promise<void> {
  const { database } = archiveNames;
  for (const name of [database, `${database}-wal`, `${database}-shm`, STORAGE]) {
    await removeIfThere(join(dataDir, name));
  }
  await syncFolder(dataDir);
  await removeMark(dataDir);
}

async function removeMark(dataDir: string): Promise<void> {
  await removeIfThere(join(dataDir, MARK));
  await syncFolder(dataDir);
}

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
