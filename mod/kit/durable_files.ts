/** Files that are on disk for certain: what a power failure may not take back. */
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";

/**
 * Writes a whole file under another name in the same folder, brings it to disk and renames it: a crash leaves the old file
 * or the new one, never half a one. Only the server's own user can read it.
 */
export async function writeDurably(path: string, text: string): Promise<void> {
  await using staged = await stageDurably(path, text);
  await staged.put();
}

/** A file on disk that has not its name yet; it is gone when it is disposed of without having got it. */
export interface StagedFile extends AsyncDisposable {
  /** Gives it its name, in place of what has it. */
  put(): Promise<void>;
}

/** The first half of {@linkcode writeDurably}: all that takes room on the disk. */
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
    async put() {
      await Deno.rename(temporary, path);
      isPut = true;
      await syncFolder(folder);
    },
    async [Symbol.asyncDispose]() {
      if (!isPut) await Deno.remove(temporary).catch(() => {});
    },
  };
}

/** Brings what others have written to a file to the disk. */
export async function syncFile(path: string): Promise<void> {
  using file = await Deno.open(path, { write: true });
  await file.sync();
}

/** Brings the entries of a folder to disk: names that came, went or changed. */
export async function syncFolder(folder: string): Promise<void> {
  using file = await Deno.open(folder);
  await file.sync();
}

/** Writes the whole of `bytes` at the file's position. */
export async function writeAll(file: Pick<Deno.FsFile, "write">, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
}

/** Removes a file, or a folder with what is in it; there may be none. */
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

/** Whether an error says that there is no room on the disk, or no more for this user. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  return error.code === "ENOSPC" || error.code === "EDQUOT";
}
