/**
 * Data folders that an import makes as a whole. A file stands in one from before anything is written until all of it is
 * there: an import that was killed leaves it, and nobody but another import takes such a folder.
 */
import { join } from "node:path";
import { removeIfThere, statIfThere, syncFolder, writeDurably } from "../../kit/durable_files.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import { StartError } from "../../config/start_error.ts";

const MARK = "import-unfinished";
const STORAGE = "storage";

/** Throws a `StartError` for a folder that an import has not finished. */
export async function refuseUnfinished(dataDir: string): Promise<void> {
  if (await statIfThere(join(dataDir, MARK)) === null) return;
  throw new StartError(
    `An import into "${dataDir}" was not finished, and what is there is not whole: import once more, or remove that folder`,
  );
}

/** Removes what an import has left that was killed. To be called by an import that holds the folder. */
export async function removeUnfinished(dataDir: string): Promise<void> {
  if (await statIfThere(join(dataDir, MARK)) !== null) await removeMade(dataDir);
}

/**
 * Makes the data of a folder that has no database: whole, or nothing of it. Throws a `StartError` when it has uploaded files,
 * which would go with what is made.
 */
export async function makeData<Made>(dataDir: string, make: () => Promise<Made>): Promise<Made> {
  await refuseFiles(dataDir);
  await writeDurably(join(dataDir, MARK), "An import is making the data in this folder, or was killed.\n");
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
      `"${dataDir}" has no database, but there are files in "${folder}": import into a new folder, named with --data`,
      { code: "import" },
    );
  }
}

/** The mark goes last, when what it speaks of has gone for certain. */
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
