/** A bounded cache of database rows in the main process. The owner invalidates rows that change. */
import { LRUCache } from "lru-cache";
import { entriesMax } from "./bounded_lru.ts";

export interface RowCacheOptions<Row extends object> {
  /** The least recently used row is evicted. */
  readonly rowsMax: number;
  readonly idOf: (row: Row) => string;
  /** Reads a row; `null` if there is none. Missing rows are not cached. */
  readonly load: (id: string) => Promise<Row | null>;
}

/** A read in flight; `outdated` if the row may have changed since it started. */
interface Lookup<Row> {
  readonly row: Promise<Row | null>;
  outdated: boolean;
}

export class RowCache<Row extends object> {
  readonly #options: RowCacheOptions<Row>;
  readonly #rows: LRUCache<string, Row>;
  readonly #lookups = new Map<string, Lookup<Row>>();

  constructor(options: RowCacheOptions<Row>) {
    this.#options = options;
    this.#rows = new LRUCache(entriesMax(options.rowsMax));
  }

  /** Returns a row, synchronously if it is cached. Rejects if it cannot be read. */
  find(id: string): Row | null | Promise<Row | null> {
    return this.cached(id) ?? this.#loadCurrent(id);
  }

  cached(id: string): Row | undefined {
    return this.#rows.get(id);
  }

  rows(): Iterable<Row> {
    return this.#rows.values();
  }

  /** Drops a row that may have changed; lookups in flight read it again. */
  invalidate(id: string): void {
    this.#rows.delete(id);
    const lookup = this.#lookups.get(id);
    if (lookup === undefined) return;
    lookup.outdated = true;
    this.#lookups.delete(id);
  }

  /** Makes all lookups in flight read again. */
  invalidateLookups(): void {
    for (const id of [...this.#lookups.keys()]) this.invalidate(id);
  }

  /** Drops all rows, after changes may have been missed. */
  clear(): void {
    this.#rows.clear();
    this.invalidateLookups();
  }

  async #loadCurrent(id: string): Promise<Row | null> {
    for (;;) {
      const lookup = this.#lookups.get(id) ?? this.#startLookup(id);
      const row = await lookup.row;
      if (!lookup.outdated) return row;
    }
  }

  #startLookup(id: string): Lookup<Row> {
    const lookup: Lookup<Row> = {
      outdated: false,
      row: this.#options.load(id).then((row) => {
        if (row !== null && !lookup.outdated) this.#rows.set(this.#options.idOf(row), row);
        return row;
      }).finally(() => {
        if (!lookup.outdated) this.#lookups.delete(id);
      }),
    };
    this.#lookups.set(id, lookup);
    return lookup;
  }
}
