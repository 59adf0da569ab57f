/**
 * A file that appears under its name when it is whole, and never in the place of another. Until then it lies beside it under
 * a hidden name, locked, so that whoever comes next knows what a process left behind that was killed.
 */
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { removeIfThere, statIfThere, syncFolder, writeAll } from "../kit/durable_files.ts";
import { fileErrorReason } from "../kit/file_error_reason.ts";
import { opsLimits } from "./limits.ts";
import { BackupError } from "./backups/backup_error.ts";
import { hasRoom } from "./disk_room.ts";

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

  /** Begins a file (mode 0600). Throws a `BackupError` when there is one already, or no folder to put it in. */
  static async create(path: string): Promise<NewFile> {
    const folder = dirname(path);
    try {
      await refuseExisting(path);
      await removeAbandonedFiles(folder);
      for (;;) {
        const partial = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}.syncline-partial`);
        const file = await Deno.open(partial, { write: true, createNew: true, mode: 0o600 });
        await file.lock(true);
        // Somebody who was tidying up may have been faster than the lock.
        if (await statIfThere(partial) !== null) return new NewFile({ path, partial, file });
        file.close();
      }
    } catch (error) {
      if (error instanceof BackupError) throw error;
      throw new BackupError(`Cannot write "${path}": ${fileErrorReason(error)}`, { cause: error });
    }
  }

  /** Takes its bytes; closing brings them to disk. Fails with what `whenFull` gives before the disk is full. */
  writable({ whenFull }: { readonly whenFull: () => Error }): WritableStream<Uint8Array> {
    let unchecked = opsLimits.roomCheckBytes;
    return new WritableStream({
      write: async (bytes) => {
        unchecked += bytes.length;
        if (unchecked > opsLimits.roomCheckBytes) {
          if (!await hasRoom(dirname(this.#path), 0)) throw whenFull();
          unchecked = 0;
        }
        await writeAll(this.#file, bytes);
      },
      close: () => this.#file.sync(),
    });
  }

  /** Lets the file appear. Throws a `BackupError` when another has come to its place. */
  async place(): Promise<void> {
    try {
      await Deno.link(this.#partial, this.#path);
    } catch (error) {
      // File systems without links: there is a moment in which another may come.
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
  throw new BackupError(`"${path}" is there already: choose another name, or move it away`);
}

/** Removes what killed processes left unfinished in a folder. */
export async function removeAbandonedFiles(folder: string): Promise<void> {
  for await (const { name } of Deno.readDir(folder)) {
    if (!PARTIAL.test(name)) continue;
    const path = join(folder, name);
    try {
      using file = await Deno.open(path, { write: true });
      if (await file.tryLock(true)) await removeIfThere(path);
    } catch (error) {
      // Another user's, or gone.
      if (!(error instanceof Deno.errors.PermissionDenied || error instanceof Deno.errors.NotFound)) {
        throw error;
      }
    }
  }
}
