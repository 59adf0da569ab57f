/**
 * Hard links to the stored files that a database state references. A file exists before its document and is removed after it,
 * so links made before and after opening a snapshot cover all its files, even if they are removed later. Only a file created
 * and deleted in between can be missing; then the caller takes a newer snapshot.
 */
import { dirname, join } from "node:path";
import { openExport } from "../../../engine/mod.ts";
import { removeIfThere, statIfThere } from "../../../kit/durable_files.ts";
import { opsLimits } from "../../limits.ts";
import { filesFolder } from "./work_folder.ts";

export const storedFiles = { table: "_storage", field: "blob" } as const;

const SHARD = /^[0-9a-f]{2}$/;
const BLOB = /^[0-9a-f]{32}$/;

export class StoredFiles {
  readonly #folder: string;
  /** Links to all files seen. */
  readonly #all: string;
  /** Links to the referenced files. */
  readonly #named: string;

  /** `links`: folder for links on the files' disk, created when needed. */
  constructor(dataDir: string, links: string) {
    this.#folder = filesFolder(dataDir);
    this.#all = join(links, "all");
    this.#named = join(links, "named");
  }

  /** Links all existing files that have no link yet. Throws the reason of `signal`. */
  async link(signal?: AbortSignal): Promise<void> {
    for (const shard of await shardsOf(this.#folder)) {
      await Deno.mkdir(join(this.#all, shard), { recursive: true, mode: 0o700 });
      for await (const { name } of Deno.readDir(join(this.#folder, shard))) {
        signal?.throwIfAborted();
        if (BLOB.test(name)) {
          await linkUnlessThere(join(this.#folder, shard, name), join(this.#all, shard, name));
        }
      }
    }
  }

  /** Links one file, if it exists. Returns whether it has a link. */
  async hold(blob: string): Promise<boolean> {
    const source = join(this.#folder, blob.slice(0, 2), blob);
    const place = this.#linkTo(blob);
    if (await linkUnlessThere(source, place)) return true;
    await Deno.mkdir(dirname(place), { recursive: true, mode: 0o700 });
    // A file removed by now may have been linked before.
    return await linkUnlessThere(source, place) || await statIfThere(place) !== null;
  }

  /** Reads a linked file; `null` for others. */
  async read(blob: string): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    try {
      return (await Deno.open(this.#linkTo(blob))).readable;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }

  /** Selects the files referenced by a copy of the database. Returns names without a link. */
  async select(database: string): Promise<ReadonlySet<string>> {
    await removeIfThere(this.#named);
    for (const shard of await shardsOf(this.#all)) {
      await Deno.mkdir(join(this.#named, shard), { recursive: true, mode: 0o700 });
    }
    const missing = new Set<string>();
    for (const blob of blobsIn(database)) {
      const place = join(blob.slice(0, 2), blob);
      const linked = await linkUnlessThere(join(this.#all, place), join(this.#named, place));
      if (!linked && missing.size < opsLimits.missingFilesMax) missing.add(blob);
    }
    return missing;
  }

  async *selected(): AsyncGenerator<{ readonly name: string; readonly path: string; readonly size: number }> {
    for (const shard of await shardsOf(this.#named)) {
      for await (const { name } of Deno.readDir(join(this.#named, shard))) {
        const path = join(this.#named, shard, name);
        yield { name: `${shard}/${name}`, path, size: (await Deno.stat(path)).size };
      }
    }
  }

  #linkTo(blob: string): string {
    return join(this.#all, blob.slice(0, 2), blob);
  }
}

/** Yields the blob names in a table of a database, by default of the stored files. */
export function* blobsIn(database: string, table: string = storedFiles.table): Generator<string> {
  using snapshot = openExport(database);
  if (!snapshot.tables.includes(table)) return;
  for (const text of snapshot.documents(table)) {
    const blob = (JSON.parse(text) as Record<string, unknown>)[storedFiles.field];
    if (typeof blob === "string" && BLOB.test(blob)) yield blob;
  }
}

async function shardsOf(folder: string): Promise<string[]> {
  if (await statIfThere(folder) === null) return [];
  const entries = await Array.fromAsync(Deno.readDir(folder));
  return entries.filter(({ name, isDirectory }) => isDirectory && SHARD.test(name)).map(({ name }) => name)
    .sort();
}

/** Returns whether the source existed. */
async function linkUnlessThere(from: string, to: string): Promise<boolean> {
  try {
    await Deno.link(from, to);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
  return true;
}
