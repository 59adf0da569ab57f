/**
 * Where a restore keeps its files, below the data folder. `restore-staged/` holds the marker and, in a folder with a
 * random name, the unpacked archive; writing the marker is what stages it, so there is never half of two.
 */
import { join } from "node:path";
import { archiveNames } from "../archive/entry_names.ts";
import type { ArchivePart } from "../archive/mod.ts";
import { removeIfThere, syncFolder } from "../../../kit/durable_files.ts";

export const STAGED_FOLDER = "restore-staged";
export const MARKER_FILE = "pending-restore.json";
/** Followed by the time at which the restore was applied. */
export const KEPT_PREFIX = "pre-restore-";

/** The file or folder that is each part of an archive, in the order in which they are swapped. */
export const nameOfPart: Readonly<Record<ArchivePart, string>> = {
  database: archiveNames.database,
  log: archiveNames.log,
  files: archiveNames.files.replace(/\/$/, ""),
  secret: archiveNames.secret,
};

/** The database first: while it has not moved, nothing has. */
export function partsInOrder(parts: readonly ArchivePart[]): readonly ArchivePart[] {
  return (Object.keys(nameOfPart) as ArchivePart[]).filter((part) => parts.includes(part));
}

/** SQLite's files beside a database. They belong to it: beside another they would destroy it. */
export function besideDatabase(name: string): readonly string[] {
  return name.endsWith(".db") ? [`${name}-wal`, `${name}-shm`, `${name}-journal`] : [];
}

export function stagedFolder(dataDir: string): string {
  return join(dataDir, STAGED_FOLDER);
}

/**
 * Holds the right to stage until it is disposed of; the kernel gives it back when the process ends. `null` when another
 * process has it, or there is no folder.
 */
export async function takeStaging(dataDir: string): Promise<Disposable | null> {
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

/** Whether an open folder is the one at a path: whoever held it may have removed it. */
async function isStill(folder: Deno.FsFile, path: string): Promise<boolean> {
  try {
    const [held, there] = await Promise.all([folder.stat(), Deno.stat(path)]);
    return held.ino === there.ino && held.dev === there.dev;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Removes what crashes left behind: all but the marker and the folder it names. To be called by who may stage. */
export async function removeLeftovers(
  dataDir: string,
  { keep }: { readonly keep: string | null },
): Promise<void> {
  const staged = stagedFolder(dataDir);
  for await (const { name } of Deno.readDir(staged)) {
    if (name !== MARKER_FILE && name !== keep) await removeIfThere(join(staged, name));
  }
}

/** Removes `restore-staged/` when nothing is in it: nobody should wonder what it is for. */
export async function removeStagedFolderIfEmpty(dataDir: string): Promise<void> {
  try {
    await Deno.remove(stagedFolder(dataDir));
  } catch {
    // Something is in it: it is of use to somebody, or is removed the next time.
    return;
  }
  await syncFolder(dataDir);
}
