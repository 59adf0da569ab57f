/** Objects as durable files in a folder. A missing folder is not recreated: its disk may not be mounted. */
import { randomBytes } from "node:crypto";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ByteRange } from "../http_request.ts";
import { isDiskFull, removeIfThere, statIfThere, syncFolder, writeAll } from "../durable_files.ts";
import { fileErrorReason } from "../durable_files.ts";
import { objectLimits } from "../limits.ts";
import {
  LocationError,
  type ObjectBody,
  type ObjectInfo,
  type ObjectStore,
  type ObjectWriter,
  type PutOptions,
  type StoreOptions,
} from "./object_store.ts";

/** Also matches names of earlier versions. */
const PARTIAL = /^\..*[0-9a-f]{12}\.(?:syncline-)?partial$/;

export interface FolderStoreOptions
  extends Pick<StoreOptions, "make" | "temporaryFolder" | "reserveBytes" | "signal"> {
  /** Renames a file. Tests simulate failures across file systems. */
  readonly rename?: (from: string, to: string) => Promise<void>;
}

export class FolderStore implements ObjectStore {
  readonly kind = "folder";
  readonly location: string;
  readonly #signal: AbortSignal | undefined;
  readonly #temporaryFolder: string;
  readonly #reserveBytes: number;
  readonly #rename: (from: string, to: string) => Promise<void>;
  /** Subfolders known to exist. */
  readonly #folders = new Set<string>();

  private constructor(path: string, options: FolderStoreOptions) {
    const { signal, temporaryFolder = "", reserveBytes = 0, rename } = options;
    this.location = path;
    this.#signal = signal;
    this.#temporaryFolder = join(path, temporaryFolder);
    this.#reserveBytes = reserveBytes;
    this.#rename = rename ?? Deno.rename;
  }

  /** Throws a `LocationError` if the folder is missing and is not to be made. */
  static async open(path: string, options: FolderStoreOptions = {}): Promise<FolderStore> {
    const store = new FolderStore(path, options);
    await store.#attempt("open", async () => {
      if (options.make !== true) return await store.#requireFolder();
      await Deno.mkdir(store.#temporaryFolder, { recursive: true, mode: 0o700 });
      await syncFolder(path);
      // A disk may be mounted in a folder that this user may not read.
      await syncFolder(dirname(path)).catch(() => {});
    });
    return store;
  }

  async *list(prefix: string): AsyncGenerator<ObjectInfo, void> {
    await this.#requireFolder();
    yield* this.#listFolder(prefix.slice(0, prefix.lastIndexOf("/") + 1), prefix);
  }

  async head(name: string): Promise<ObjectInfo | null> {
    return await this.#attempt("read", async () => {
      const info = await Deno.lstat(this.#path(name)).catch((error) => this.#missing(error));
      if (info === null || !info.isFile) return null;
      return { name, size: info.size, writtenAt: info.mtime?.getTime() ?? 0 };
    });
  }

  async get(name: string, range: ByteRange | null = null): Promise<ObjectBody | null> {
    return await this.#attempt("read", async () => {
      const file = await Deno.open(this.#path(name)).catch((error) => this.#missing(error));
      if (file === null) return null;
      const body = range === null ? file.readable : rangeOf(file, range);
      return this.#signal === undefined ? body : body.pipeThrough(new TransformStream(), {
        signal: this.#signal,
      });
    });
  }

  async create(name: string): Promise<ObjectWriter> {
    const temporary = this.#temporary();
    return await this.#attempt("write to", () =>
      FileWriter.create(temporary, {
        publish: () => this.#publish(temporary, name),
        attempt: (run) => this.#attempt("write to", run),
      }));
  }

  async put(
    name: string,
    bytes: Uint8Array<ArrayBuffer>,
    { ifAbsent = false, volatile = false }: PutOptions = {},
  ): Promise<boolean> {
    return await this.#write(async (temporary) => {
      {
        using file = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
        await writeAll(file, bytes);
        if (!volatile) await file.sync();
      }
      if (!ifAbsent) return await this.#publish(temporary, name, { volatile });
      const { folder, path } = await this.#target(name);
      // A link fails if the name is taken; a rename would replace the file.
      await Deno.link(temporary, path);
      await Deno.remove(temporary);
      await syncFolder(folder);
    });
  }

  async putFile(name: string, path: string, { move = false } = {}): Promise<void> {
    if (move && await this.#attempt("write to", () => this.#move(path, name))) return;
    await this.#write(async (temporary) => {
      const source = await Deno.open(path);
      using target = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
      await this.#requireSpace((await source.stat()).size);
      for await (const chunk of source.readable) {
        this.#signal?.throwIfAborted();
        await writeAll(target, chunk);
      }
      await target.sync();
      await this.#publish(temporary, name);
    });
    if (move) await removeIfThere(path);
  }

  async delete(...names: readonly string[]): Promise<void> {
    await this.#attempt("delete from", async () => {
      // Not synced: a crash may bring an object back, which is then deleted again.
      for (const name of names) await Deno.remove(this.#path(name)).catch((error) => this.#missing(error));
    });
  }

  async deleteFolder(prefix: string): Promise<void> {
    const path = this.#path(prefix);
    for (const folder of this.#folders) {
      if (folder === path || folder.startsWith(`${path}/`)) this.#folders.delete(folder);
    }
    await this.#attempt("delete from", () => removeIfThere(path));
  }

  async check(): Promise<void> {
    await this.#requireFolder();
    await this.#attempt("write to", async () => {
      const path = this.#temporary();
      await Deno.writeFile(path, new Uint8Array(1), { createNew: true, mode: 0o600 });
      await Deno.remove(path);
    });
  }

  async removeUnfinished(_prefix: string, { before = Infinity }: { readonly before?: number } = {}) {
    await this.#requireFolder();
    await this.#attempt("delete from", async () => {
      // Earlier versions wrote temporary files beside their targets.
      const folders = [this.#temporaryFolder];
      for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
        for (const { name, isDirectory, isFile } of await this.#entries(folder)) {
          const path = join(folder, name);
          if (isDirectory) folders.push(path);
          if (!isFile || !PARTIAL.test(name)) continue;
          const info = await statIfThere(path);
          if (info !== null && (info.mtime?.getTime() ?? 0) < before) await removeIfThere(path);
        }
      }
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  async *#listFolder(folder: string, prefix: string): AsyncGenerator<ObjectInfo, void> {
    const path = join(this.location, folder);
    const found: ObjectInfo[] = [];
    const folders: string[] = [];
    for (let attempt = 1; attempt <= objectLimits.listingsMax; attempt++) {
      found.length = folders.length = 0;
      let isComplete = true;
      for (const entry of await this.#attempt("list", () => this.#entries(path))) {
        const name = folder + entry.name;
        if (entry.isDirectory && (`${name}/`.startsWith(prefix))) folders.push(`${name}/`);
        if (!entry.isFile || !name.startsWith(prefix) || PARTIAL.test(entry.name)) continue;
        const info = await this.#attempt("list", () => statIfThere(join(path, entry.name)));
        if (info === null) isComplete = false;
        else found.push({ name, size: info.size, writtenAt: info.mtime?.getTime() ?? 0 });
      }
      // A file that was removed may be part of a larger one, which was written after the names were read.
      if (isComplete) break;
    }
    yield* found;
    for (const folder of folders) yield* this.#listFolder(folder, prefix);
  }

  async #entries(path: string): Promise<Deno.DirEntry[]> {
    try {
      return await Array.fromAsync(Deno.readDir(path));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      throw error;
    }
  }

  /** Returns whether the object was written: `write` throws `AlreadyExists` if it exists. */
  async #write(write: (temporary: string) => Promise<void>): Promise<boolean> {
    const temporary = this.#temporary();
    return await this.#attempt("write to", async () => {
      try {
        await write(temporary);
        return true;
      } catch (error) {
        await removeIfThere(temporary).catch(() => {});
        if (error instanceof Deno.errors.AlreadyExists) return false;
        throw error;
      }
    });
  }

  /** Returns `false` if the file is on another disk. */
  async #move(path: string, name: string): Promise<boolean> {
    const target = await this.#target(name);
    try {
      await this.#rename(path, target.path);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EXDEV") return false;
      // A call that was interrupted after the move is repeated.
      if (!(error instanceof Deno.errors.NotFound) || await statIfThere(target.path) === null) throw error;
    }
    await syncFolder(target.folder);
    await syncFolder(dirname(path));
    return true;
  }

  async #publish(temporary: string, name: string, { volatile = false } = {}): Promise<void> {
    const { folder, path } = await this.#target(name);
    await Deno.rename(temporary, path);
    if (!volatile) await syncFolder(folder);
  }

  /** Returns the path of an object in an existing, synced folder. */
  async #target(name: string): Promise<{ readonly folder: string; readonly path: string }> {
    const path = this.#path(name);
    const folder = dirname(path);
    if (folder !== this.location && !this.#folders.has(folder)) {
      await this.#requireFolder();
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      for (let parent = folder; parent !== this.location;) await syncFolder(parent = dirname(parent));
      if (this.#folders.size < objectLimits.foldersKnownMax) this.#folders.add(folder);
    }
    return { folder, path };
  }

  #path(name: string): string {
    return join(this.location, name);
  }

  #temporary(): string {
    return join(this.#temporaryFolder, `.${randomBytes(12).toString("hex")}.partial`);
  }

  async #requireFolder(): Promise<void> {
    this.#signal?.throwIfAborted();
    if ((await this.#attempt("use", () => statIfThere(this.location)))?.isDirectory) return;
    throw new LocationError(
      "away",
      `Folder "${this.location}" does not exist. Mount its disk, or choose another folder`,
    );
  }

  /** Returns `null` for a missing file, unless the whole folder is missing. */
  async #missing(error: unknown): Promise<null> {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    await this.#requireFolder();
    return null;
  }

  /** Throws before the disk is full: a server may write to it. */
  async #requireSpace(bytes: number): Promise<void> {
    if (this.#reserveBytes === 0) return;
    try {
      const { bavail, bsize } = await statfs(this.location);
      if (bytes + this.#reserveBytes <= bavail * bsize) return;
    } catch (error) {
      if (error instanceof Deno.errors.NotCapable) return;
      throw error;
    }
    throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
  }

  async #attempt<Result>(operation: string, run: () => Promise<Result>): Promise<Result> {
    this.#signal?.throwIfAborted();
    try {
      return await run();
    } catch (cause) {
      if (cause instanceof LocationError || this.#signal?.aborted) throw cause;
      // The folder itself is missing.
      if (cause instanceof Deno.errors.NotFound && operation !== "use") await this.#requireFolder();
      const isRefused = cause instanceof Deno.errors.PermissionDenied ||
        cause instanceof Deno.errors.NotCapable;
      const reason = isDiskFull(cause) ? "its disk is full. Free disk space" : fileErrorReason(cause);
      throw new LocationError(
        isRefused ? "refused" : "away",
        `Cannot ${operation} "${this.location}": ${reason}`,
        { cause },
      );
    }
  }
}

interface FileWriterParts {
  /** Gives the synced file its name. */
  readonly publish: () => Promise<void>;
  /** Explains errors. */
  readonly attempt: <Result>(run: () => Promise<Result>) => Promise<Result>;
}

class FileWriter implements ObjectWriter {
  readonly #temporary: string;
  readonly #file: Deno.FsFile;
  readonly #parts: FileWriterParts;
  /** Bytes written since the last early sync. */
  #unsynced = 0;
  /** The early sync in flight. It uses a file handle of its own, because operations on one handle are serialized. */
  #syncing: Promise<void> | null = null;
  /** Error of an early sync, thrown by `commit`. */
  #failure: unknown = null;

  private constructor(temporary: string, file: Deno.FsFile, parts: FileWriterParts) {
    this.#temporary = temporary;
    this.#file = file;
    this.#parts = parts;
  }

  static async create(temporary: string, parts: FileWriterParts): Promise<FileWriter> {
    const file = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
    return new FileWriter(temporary, file, parts);
  }

  async write(chunk: Uint8Array): Promise<void> {
    await this.#parts.attempt(() => writeAll(this.#file, chunk));
    this.#unsynced += chunk.length;
    if (this.#unsynced < objectLimits.earlySyncBytes || this.#syncing !== null) return;
    this.#unsynced = 0;
    this.#syncing = this.#syncEarly().finally(() => this.#syncing = null);
  }

  async commit(): Promise<void> {
    await this.#parts.attempt(async () => {
      await this.#syncing;
      if (this.#failure !== null) throw this.#failure;
      await this.#file.sync();
      this.#file.close();
      await this.#parts.publish();
    });
  }

  async abort(): Promise<void> {
    await this.#syncing;
    closeQuietly(this.#file);
    await removeIfThere(this.#temporary).catch(() => {});
  }

  /** Never rejects. */
  async #syncEarly(): Promise<void> {
    try {
      using file = await Deno.open(this.#temporary, { write: true });
      await file.syncData();
    } catch (error) {
      this.#failure = error;
    }
  }
}

/** Streams the bytes of a range. Closes the file at the end, on cancel and on errors. */
function rangeOf(file: Deno.FsFile, { start, end }: ByteRange): ObjectBody {
  let left = end - start + 1;
  let isPositioned = false;
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      try {
        if (!isPositioned) {
          await file.seek(start, Deno.SeekMode.Start);
          isPositioned = true;
        }
        const buffer = new Uint8Array(Math.min(left, objectLimits.readChunkBytes));
        const read = await file.read(buffer);
        if (read === null) throw new Error("The file is shorter than the requested range");
        left -= read;
        controller.enqueue(buffer.subarray(0, read));
        if (left > 0) return;
        file.close();
        controller.close();
      } catch (error) {
        closeQuietly(file);
        controller.error(error);
      }
    },
    cancel: () => closeQuietly(file),
  });
}

function closeQuietly(file: Deno.FsFile): void {
  try {
    file.close();
  } catch {
    // Closed already.
  }
}
