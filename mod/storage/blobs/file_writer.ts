/** Writes a blob into a folder: to a temporary file, which is synced and renamed. */
import { removeIfThere, syncFolder, writeAll } from "../../kit/durable_files.ts";
import { storageLimits } from "../limits.ts";
import type { BlobWriter } from "./blob_store.ts";

export interface FileWriterOptions {
  readonly temporary: string;
  /** The final path, in a folder that is synced. */
  readonly target: () => Promise<{ readonly folder: string; readonly path: string }>;
}

export class FileWriter implements BlobWriter {
  readonly #file: Deno.FsFile;
  readonly #options: FileWriterOptions;
  /** Bytes written since the last early sync. */
  #unsynced = 0;
  /** The early sync in flight. It uses a file handle of its own, because operations on one handle are serialized. */
  #syncing: Promise<void> | null = null;
  /** Error of an early sync, thrown by `commit`. */
  #failure: unknown = null;

  private constructor(file: Deno.FsFile, options: FileWriterOptions) {
    this.#file = file;
    this.#options = options;
  }

  static async create(options: FileWriterOptions): Promise<FileWriter> {
    const file = await Deno.open(options.temporary, { write: true, createNew: true, mode: 0o600 });
    return new FileWriter(file, options);
  }

  async write(chunk: Uint8Array): Promise<void> {
    await writeAll(this.#file, chunk);
    this.#unsynced += chunk.length;
    if (this.#unsynced < storageLimits.earlySyncBytes || this.#syncing !== null) return;
    this.#unsynced = 0;
    this.#syncing = this.#syncEarly().finally(() => this.#syncing = null);
  }

  async commit(): Promise<void> {
    await this.#syncing;
    if (this.#failure !== null) throw this.#failure;
    await this.#file.sync();
    this.#file.close();
    const { folder, path } = await this.#options.target();
    await Deno.rename(this.#options.temporary, path);
    await syncFolder(folder);
  }

  async abort(): Promise<void> {
    await this.#syncing;
    try {
      this.#file.close();
    } catch {
      // Closed by a commit that failed afterwards.
    }
    // Leftovers are removed when the folder is opened again.
    await removeIfThere(this.#options.temporary).catch(() => {});
  }

  /** Never rejects. */
  async #syncEarly(): Promise<void> {
    try {
      using file = await Deno.open(this.#options.temporary, { write: true });
      await file.syncData();
    } catch (error) {
      this.#failure = error;
    }
  }
}
