/** Writes a file that appears when complete and replaces none. Its locked temporary name identifies leftovers. */
import { randomBytes } from "node:crypto";
import { statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileErrorReason, removeIfThere, statIfThere, syncFolder, writeAll } from "../kit/durable_files.ts";
import { BackupError } from "./backups/backup_error.ts";
import { opsLimits } from "./limits.ts";

/** Whether the disk has space for `bytes` plus the reserve of a server on it; `true` if this process may not query the disk. */
export async function hasDiskSpace(folder: string, bytes: number): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bytes + opsLimits.diskReserveBytes <= bavail * bsize;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return true;
    throw error;
  }
}

const PARTIAL = /^\..+\.[0-9a-f]{12}\.syncline-partial$/;

export class NewFile implements AsyncDisposable {
  readonly #path: string;
  readonly #partial: string;
  readonly #file: Deno.FsFile;

  private constructor({ path, partial, file }: {
    readonly path: string;
    readonly partial: string;
    readonly file: Deno.FsFile;
  }) {
    this.#path = path;
    this.#partial = partial;
    this.#file = file;
  }

  /** Starts a file (mode 0600). Throws a `BackupError` if it already exists or its folder is missing. */
  static async create(path: string): Promise<NewFile> {
    const folder = dirname(path);
    try {
      await refuseExisting(path);
      await removeAbandonedFiles(folder);
      for (;;) {
        const partial = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}.syncline-partial`);
        const file = await Deno.open(partial, { write: true, createNew: true, mode: 0o600 });
        await file.lock(true);
        // A concurrent cleanup may have removed the file before it was locked.
        if (await statIfThere(partial) !== null) return new NewFile({ path, partial, file });
        file.close();
      }
    } catch (error) {
      if (error instanceof BackupError) throw error;
      throw new BackupError(`Cannot write "${path}": ${fileErrorReason(error)}`, { cause: error });
    }
  }

  /** Returns a stream that writes the file and syncs it on close. Fails with `whenFull()` before the disk is full. */
  writable({ whenFull }: { readonly whenFull: () => Error }): WritableStream<Uint8Array> {
    let unchecked = opsLimits.roomCheckBytes;
    return new WritableStream({
      write: async (bytes) => {
        unchecked += bytes.length;
        if (unchecked > opsLimits.roomCheckBytes) {
          if (!await hasDiskSpace(dirname(this.#path), 0)) throw whenFull();
          unchecked = 0;
        }
        await writeAll(this.#file, bytes);
      },
      close: () => this.#file.sync(),
    });
  }

  /** Gives the file its final name. Throws a `BackupError` if that name is taken by now. */
  async publish(): Promise<void> {
    try {
      await Deno.link(this.#partial, this.#path);
    } catch (error) {
      // Without hard links, another file may appear between check and rename.
      await refuseExisting(this.#path);
      if (error instanceof Deno.errors.NotFound) throw error;
      await Deno.rename(this.#partial, this.#path);
    }
    await removeIfThere(this.#partial);
    await syncFolder(dirname(this.#path));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeIfThere(this.#partial);
    this.#file.close();
  }
}

async function refuseExisting(path: string): Promise<void> {
  if (await statIfThere(path) === null) return;
  throw new BackupError(`"${path}" already exists. Choose another name or move the file`);
}

export async function removeAbandonedFiles(folder: string): Promise<void> {
  for await (const { name } of Deno.readDir(folder)) {
    if (!PARTIAL.test(name)) continue;
    const path = join(folder, name);
    try {
      using file = await Deno.open(path, { write: true });
      if (await file.tryLock(true)) await removeIfThere(path);
    } catch (error) {
      // Owned by another user, or already removed.
      if (!(error instanceof Deno.errors.PermissionDenied || error instanceof Deno.errors.NotFound)) {
        throw error;
      }
    }
  }
}
