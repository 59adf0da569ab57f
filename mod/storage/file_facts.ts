/** What main knows of stored files: looked up once, kept in bounded memory, and kept true by the commit stream. */
import type { CommitEntry } from "../engine/types.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { storageLimits } from "./limits.ts";
import type { StoredFile } from "./stored_file.ts";
import { system } from "./system_calls.ts";

/** A look-up under way; `outdated` when the file may have changed since it began. */
interface Lookup {
  readonly file: Promise<StoredFile | null>;
  outdated: boolean;
}

export class FileFacts {
  readonly #calls: SystemCalls;
  /** Files known to exist, in order of last use. */
  readonly #files = new Map<string, StoredFile>();
  readonly #lookups = new Map<string, Lookup>();

  constructor(calls: SystemCalls) {
    this.#calls = calls;
  }

  /** The file with this id, at once when it is known; `null` for texts that are not the id of one. */
  find(id: string): StoredFile | null | Promise<StoredFile | null> {
    return this.known(id) ?? this.#look(id);
  }

  /** The file with this id if it is in memory. */
  known(id: string): StoredFile | undefined {
    const file = this.#files.get(id);
    if (file !== undefined) this.#remember(file);
    return file;
  }

  /** Takes note of commits: to be called with each group, in order. */
  applyCommits(entries: readonly CommitEntry[]): void {
    for (const { changes } of entries) {
      for (const { table, id } of changes) {
        if (table === "_storage") this.#forget(id);
      }
    }
  }

  /** Forgets everything, after commits may have been missed. */
  clear(): void {
    this.#files.clear();
    for (const id of [...this.#lookups.keys()]) this.#forget(id);
  }

  async #look(id: string): Promise<StoredFile | null> {
    for (;;) {
      const lookup = this.#lookups.get(id) ?? this.#lookUp(id);
      const file = await lookup.file;
      if (!lookup.outdated) return file;
    }
  }

  #lookUp(id: string): Lookup {
    const lookup: Lookup = {
      outdated: false,
      file: this.#calls.query(system.findFile, { id }).then((file) => {
        if (file !== null && !lookup.outdated) this.#remember(file);
        return file;
      }).finally(() => {
        if (!lookup.outdated) this.#lookups.delete(id);
      }),
    };
    this.#lookups.set(id, lookup);
    return lookup;
  }

  #remember(file: StoredFile): void {
    this.#files.delete(file.id);
    this.#files.set(file.id, file);
    if (this.#files.size <= storageLimits.cachedFilesMax) return;
    const [oldest] = this.#files.keys();
    if (oldest !== undefined) this.#files.delete(oldest);
  }

  #forget(id: string): void {
    this.#files.delete(id);
    const lookup = this.#lookups.get(id);
    if (lookup === undefined) return;
    lookup.outdated = true;
    this.#lookups.delete(id);
  }
}
