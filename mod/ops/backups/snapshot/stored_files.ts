/**
 * The files of a data folder as one state of the database names them. A file is there before its document and goes after
 * it, so the links that were made before a state was taken, and again after, hold every file of that state, whatever is
 * removed later. Only one that came between the two and went at once can be missing: the caller takes a newer state then.
 */
import { dirname, join } from "node:path";
import { openExport } from "../../../engine/mod.ts";
import { removeIfThere, statIfThere } from "../../../kit/durable_files.ts";
import { opsLimits } from "../../limits.ts";
import { filesFolder } from "./work_folder.ts";

/** The table of stored files, and its field with the name of a file's blob. */
export const storedFiles = { table: "_storage", field: "blob" } as const;

const SHARD = /^[0-9a-f]{2}$/;
const BLOB = /^[0-9a-f]{32}$/;

export class StoredFiles {
  readonly #folder: string;
  /** Links to all files met. */
  readonly #all: string;
  /** Links to those that a state names. */
  readonly #named: string;

  /** `links`: a folder for links, on the disk of the files; made when it is needed. */
  constructor(dataDir: string, links: string) {
    this.#folder = filesFolder(dataDir);
    this.#all = join(links, "all");
    this.#named = join(links, "named");
  }

  /** Links every file that is there and has no link yet. Throws what `signal` is aborted with meanwhile. */
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

  /** Links one file, if it is there and has no link yet. Gives back whether it has one. */
  async hold(blob: string): Promise<boolean> {
    const source = join(this.#folder, blob.slice(0, 2), blob);
    const place = this.#linkTo(blob);
    if (await linkUnlessThere(source, place)) return true;
    await Deno.mkdir(dirname(place), { recursive: true, mode: 0o700 });
    // Also when it is gone by now it may have been linked before.
    return await linkUnlessThere(source, place) || await statIfThere(place) !== null;
  }

  /** Reads a file that has a link; `null` for others. */
  async read(blob: string): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    try {
      return (await Deno.open(this.#linkTo(blob))).readable;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }

  /** Puts aside the files that a copy of the database names. Gives back names of those that have no link. */
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

  /** The selected files, with their paths and sizes. */
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

/** Names of the blobs that a table of a database names: that of stored files, unless told. */
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

/** Gives back whether the file was there. */
async function linkUnlessThere(from: string, to: string): Promise<boolean> {
  try {
    await Deno.link(from, to);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
  return true;
}
