/** File writes that survive a power failure. */
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";

/**
 * Writes a file under a temporary name, syncs it and renames it: after a crash there is the old file or the new one.
 * Only the server's user can read it.
 */
export async function writeDurably(path: string, text: string): Promise<void> {
  await using staged = await stageDurably(path, text);
  await staged.commit();
}

/** A synced file under a temporary name; removed when disposed of before `commit`. */
export interface StagedFile extends AsyncDisposable {
  /** Renames it to its final name, replacing an existing file. */
  commit(): Promise<void>;
}

/** The first half of {@linkcode writeDurably}: everything that needs disk space. */
export async function stageDurably(path: string, text: string): Promise<StagedFile> {
  const folder = dirname(path);
  const temporary = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    await Deno.writeTextFile(temporary, text, { createNew: true, mode: 0o600 });
    using file = await Deno.open(temporary);
    await file.sync();
  } catch (error) {
    await Deno.remove(temporary).catch(() => {});
    throw error;
  }
  let isPut = false;
  return {
    async commit() {
      await Deno.rename(temporary, path);
      isPut = true;
      await syncFolder(folder);
    },
    async [Symbol.asyncDispose]() {
      if (!isPut) await Deno.remove(temporary).catch(() => {});
    },
  };
}

/** Syncs what other processes have written to a file. */
export async function syncFile(path: string): Promise<void> {
  using file = await Deno.open(path, { write: true });
  await file.sync();
}

/** Syncs a folder's entries: created, removed and renamed files. */
export async function syncFolder(folder: string): Promise<void> {
  using file = await Deno.open(folder);
  await file.sync();
}

export async function writeAll(file: Pick<Deno.FsFile, "write">, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
}

/** Removes a file, or a folder with its contents, if it exists. */
export async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

export async function statIfThere(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "disk_full"]);

/** How the file system, SQLite and backups say it, in errors that another process reported as text. */
const FULL_TEXT =
  /\bno space left on device\b|\bdisk is full\b|\bno room on the disk\b|\bnot enough disk space\b/i;

/** Whether an error, or one that caused it, says that the disk is full, or this user's quota of it. */
export function isDiskFull(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 10; cause = cause.cause, depth++) {
    if ("code" in cause && FULL.has(cause.code) || FULL_TEXT.test(cause.message)) return true;
  }
  return false;
}
