/**
 * Blob store in a folder: `<two digits>/<name>`, derivatives in `derived/<two digits>/<name>/`, temporary files in `tmp/`.
 * Blobs are written to `tmp/`, synced and renamed, so a blob under its name is always complete.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { ByteRange } from "../../kit/byte_range.ts";
import { removeIfThere, statIfThere, syncFolder } from "../../kit/durable_files.ts";
import type { BlobStore, BlobWriter, ListedBlob } from "./blob_store.ts";
import { fileStream } from "./file_stream.ts";
import { FileWriter } from "./file_writer.ts";

const SHARD = /^[0-9a-f]{2}$/;

export class LocalBlobs implements BlobStore {
  readonly #folder: string;
  /** Shard folders known to exist, at most 256. */
  readonly #shards = new Set<string>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Opens a folder, creating it if missing. Removes leftovers in `tmp/`, unless another server may still be writing there
   * (`shared`).
   */
  static async open(
    folder: string,
    { shared = false }: { readonly shared?: boolean } = {},
  ): Promise<LocalBlobs> {
    const temporary = join(folder, "tmp");
    if (!shared) await removeIfThere(temporary);
    await Deno.mkdir(temporary, { recursive: true, mode: 0o700 });
    await Deno.mkdir(join(folder, "derived"), { recursive: true, mode: 0o700 });
    await syncFolder(folder);
    await syncFolder(join(folder, ".."));
    return new LocalBlobs(folder);
  }

  async create(name: string): Promise<BlobWriter> {
    return await FileWriter.create({ temporary: this.#temporary(), target: () => this.#place(name) });
  }

  async adopt(name: string, path: string): Promise<void> {
    const target = await this.#place(name);
    try {
      await Deno.rename(path, target.path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound) || await statIfThere(target.path) === null) throw error;
    }
    await syncFolder(target.folder);
  }

  async read(
    name: string,
    part: ByteRange | null,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    try {
      const file = await Deno.open(this.#path(name));
      return part === null ? file.readable : fileStream(file, part);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }

  async remove(name: string): Promise<void> {
    await removeIfThere(this.#derivedFolder(name));
    await removeIfThere(this.#path(name));
  }

  async *list(): AsyncIterable<ListedBlob> {
    for (const folder of [this.#folder, join(this.#folder, "derived")]) {
      for await (const shard of Deno.readDir(folder)) {
        if (!shard.isDirectory || !SHARD.test(shard.name)) continue;
        for await (const { name } of Deno.readDir(join(folder, shard.name))) {
          const stat = await statIfThere(join(folder, shard.name, name));
          if (stat !== null) yield { name, writtenAt: stat.mtime?.getTime() ?? 0 };
        }
      }
    }
  }

  async readDerivative(name: string, derivative: string): Promise<Uint8Array<ArrayBuffer> | null> {
    try {
      return await Deno.readFile(join(this.#derivedFolder(name), derivative));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }

  async writeDerivative(
    name: string,
    derivative: string,
    bytes: Uint8Array<ArrayBuffer>,
  ): Promise<void> {
    const folder = this.#derivedFolder(name);
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    const temporary = this.#temporary();
    try {
      // Not synced: the rename makes it complete for readers, and a crash may lose it.
      await Deno.writeFile(temporary, bytes, { createNew: true, mode: 0o600 });
      await Deno.rename(temporary, join(folder, derivative));
    } catch (error) {
      await removeIfThere(temporary);
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  #path(name: string): string {
    return join(this.#folder, name.slice(0, 2), name);
  }

  #derivedFolder(name: string): string {
    return join(this.#folder, "derived", name.slice(0, 2), name);
  }

  #temporary(): string {
    return join(this.#folder, "tmp", randomBytes(16).toString("hex"));
  }

  /** Returns the path of a blob in a synced folder. */
  async #place(name: string): Promise<{ readonly folder: string; readonly path: string }> {
    const shard = name.slice(0, 2);
    const folder = join(this.#folder, shard);
    if (!this.#shards.has(shard)) {
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      await syncFolder(this.#folder);
      this.#shards.add(shard);
    }
    return { folder, path: join(folder, name) };
  }
}
