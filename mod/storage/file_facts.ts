/** What main knows of stored files: looked up once, kept in bounded memory, and kept true by the commit stream. */
import type { CommitEntry } from "../engine/types.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { RowCache } from "../kit/row_cache.ts";
import { storageLimits } from "./limits.ts";
import type { StoredFile } from "./stored_file.ts";
import { system } from "./system_calls.ts";

export class FileFacts {
  readonly #files: RowCache<StoredFile>;

  constructor({ calls, caughtUp }: {
    readonly calls: SystemCalls;
    /** Resolves when what was committed anywhere is known here: a file may have come elsewhere a moment ago. */
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

  /** The file with this id, at once when it is known; `null` for texts that are not the id of one. */
  find(id: string): StoredFile | null | Promise<StoredFile | null> {
    return this.#files.find(id);
  }

  /** The file with this id if it is in memory. */
  known(id: string): StoredFile | undefined {
    return this.#files.cached(id);
  }

  /** Takes note of commits: to be called with each group, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    for (const { changes } of entries) {
      for (const { table, id } of changes) {
        if (table === "_storage") this.#files.invalidate(id);
      }
    }
  }

  /** Forgets everything, after commits may have been missed. */
  clear(): void {
    this.#files.clear();
  }
}
