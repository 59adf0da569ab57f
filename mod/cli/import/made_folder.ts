/** A data folder that an import has made: gone again when it could not be made whole. */
import { join } from "node:path";
import { removeIfThere } from "../../kit/durable_files.ts";
import { archiveNames } from "../../ops/backups/archive/mod.ts";

/** Removes what was made in a folder that had no database. */
export async function removeMade(dataDir: string): Promise<void> {
  const { database } = archiveNames;
  for (const name of [database, `${database}-wal`, `${database}-shm`, "storage"]) {
    await removeIfThere(join(dataDir, name));
  }
}
