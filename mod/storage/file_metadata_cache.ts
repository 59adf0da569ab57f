/** Bounded cache of file metadata in the main process, invalidated by the commit stream. */
import type { CommitEntry } from "../engine/types.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { RowCache } from "../kit/row_cache.ts";
import { storageLimits } from "./limits.ts";
import type { StoredFile } from "./stored_file.ts";
import { system } from "./system_calls.ts";

export class FileMetadataCache {
  readonly #files: RowCache<StoredFile>;

  constructor({ calls, caughtUp }: {
    readonly calls: SystemCalls;
    /** Waits until all commits of the cluster are applied here, because a file may have been stored by another server. */
    readonly caughtUp?: (() => Promise<void>) | undefined;
  }) {
    const load = (id: string) => calls.query(system.findFile, { id });
    this.#files = new RowCache({
      rowsMax: storageLimits.cachedFilesMax,
      idOf: ({ id }) => id,
      async load(id) {
        const file = await load(id);
        if (file !== null || caughtUp === undefined) return file;
        await caughtUp();
        return await load(id);
      },
    });
  }

  /** Returns the file, synchronously if cached; `null` if there is none with this ID. */
  find(id: string): StoredFile | null | Promise<StoredFile | null> {
    return this.#files.find(id);
  }

  cached(id: string): StoredFile | undefined {
    return this.#files.cached(id);
  }

  /** Call with each group of commits, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    for (const { changes } of entries) {
      for (const { table, id } of changes) {
        if (table === "_storage") this.#files.invalidate(id);
      }
    }
  }

  /** Drops all entries. Call if commits may have been missed. */
  clear(): void {
    this.#files.clear();
  }
}
