/** File layout of restores: `restore-staged/` has the archive in a random folder, and the marker whose writing stages it. */
import { join } from "node:path";
import { archiveNames } from "../archive/entry_names.ts";
import type { ArchivePart } from "../archive/mod.ts";
import { removeIfThere, syncFolder } from "../../../kit/durable_files.ts";

export const STAGED_FOLDER = "restore-staged";
export const MARKER_FILE = "pending-restore.json";
/** Prefix of folders for replaced files, followed by the time of the restore. */
export const KEPT_PREFIX = "pre-restore-";

/** File or folder of each part, in the order in which they are swapped. */
export const nameOfPart: Readonly<Record<ArchivePart, string>> = {
  database: archiveNames.database,
  log: archiveNames.log,
  files: archiveNames.files.replace(/\/$/, ""),
  secret: archiveNames.secret,
};

/** The database comes first: while it has not moved, nothing has. */
export function partsInOrder(parts: readonly ArchivePart[]): readonly ArchivePart[] {
  return (Object.keys(nameOfPart) as ArchivePart[]).filter((part) => parts.includes(part));
}

/** SQLite's files beside a database. Beside another database they would corrupt it. */
export function besideDatabase(name: string): readonly string[] {
  return name.endsWith(".db") ? [`${name}-wal`, `${name}-shm`, `${name}-journal`] : [];
}

export function stagedFolder(dataDir: string): string {
  return join(dataDir, STAGED_FOLDER);
}

/** Acquires the staging lock; the kernel releases it with the process. `null` if it is held or there is no folder. */
export async function acquireStagingLock(dataDir: string): Promise<Disposable | null> {
  let folder: Deno.FsFile;
  try {
    folder = await Deno.open(stagedFolder(dataDir));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  if (await folder.tryLock(true) && await isStill(folder, stagedFolder(dataDir))) return folder;
  folder.close();
  return null;
}

/** Whether an open folder is still at its path: a previous holder may have removed it. */
async function isStill(folder: Deno.FsFile, path: string): Promise<boolean> {
  try {
    const [held, there] = await Promise.all([folder.stat(), Deno.stat(path)]);
    return held.ino === there.ino && held.dev === there.dev;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Removes leftovers of crashes: everything except the marker and its folder. Requires the staging lock. */
export async function removeLeftovers(
  dataDir: string,
  { keep }: { readonly keep: string | null },
): Promise<void> {
  const staged = stagedFolder(dataDir);
  for await (const { name } of Deno.readDir(staged)) {
    if (name !== MARKER_FILE && name !== keep) await removeIfThere(join(staged, name));
  }
}

/** Removes `restore-staged/` if it is empty. */
export async function removeStagedFolderIfEmpty(dataDir: string): Promise<void> {
  try {
    await Deno.remove(stagedFolder(dataDir));
  } catch {
    // Not empty: in use, or removed next time.
    return;
  }
  await syncFolder(dataDir);
}
