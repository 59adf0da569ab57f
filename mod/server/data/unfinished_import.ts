/**
 * Imports into an empty data folder are complete or have no effect. A marker file exists while an import runs. It remains if
 * the import is killed; only another import then accepts the folder.
 */
import { join } from "node:path";
import { removeIfThere, statIfThere, syncFolder, writeDurably } from "../../kit/durable_files.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import { StartError } from "../../config/start_error.ts";

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

/**
 * Creates the data of a folder without a database and removes it if `make` fails. Throws a `StartError` if the folder has
 * uploaded files, which would be removed as well.
 */
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
