/** Exact nearest-neighbour search: quantized vectors in memory, then candidates within the error as float32. */
import { engineLimits } from "../limits.ts";
import type { Connection } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { valueKey } from "../indexes/keys.ts";
import { inCreationOrder, type ScoredRow } from "../search/search.ts";
import type { Table } from "../table.ts";
import { unitVector, type VectorIndex } from "./vector_index.ts";
import { encodeQuery, VectorStore } from "./vector_store.ts";
import type { VectorSearchOptions } from "../read_options.ts";

const { vectorResultsMax } = engineLimits;
const PAGE_ROWS = 512;

/** An index in a connection's memory; `seq` is the last change it includes. */
interface LoadedIndex {
  /** `null` if the index is too large: then each search reads it from disk. */
  store: VectorStore | null;
  seq: number;
}

interface Filter {
  readonly field: number;
  readonly keys: readonly string[];
}

/** The vector indexes of one connection. */
export class VectorSearcher {
  readonly #connection: Connection;
  /** By number, least recently used first. */
  readonly #loaded = new Map<number, LoadedIndex>();
  readonly #bytesMax: number;

  /** `bytesMax` limits the memory of all indexes together. */
  constructor(connection: Connection, options: { readonly bytesMax?: number } = {}) {
    this.#connection = connection;
    this.#bytesMax = options.bytesMax ?? engineLimits.vectorBytesMax;
  }

  get inMemory(): number[] {
    return [...this.#loaded].filter(([, { store }]) => store !== null).map(([number]) => number);
  }

  /** Drops all indexes from memory after a rollback. */
  forget(): void {
    this.#loaded.clear();
  }

  /** Returns the nearest documents by score, then creation time, then id. Throws an `EngineError`. */
  search(
    table: Table,
    request: { readonly index: VectorIndex; readonly options: VectorSearchOptions },
  ): { id: string; score: number }[] {
    const { index, options } = request;
    const { limit } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > vectorResultsMax) {
      throw new EngineError(
        "bad_search",
        `Cannot return ${limit} documents: a vector search returns 1 to ${vectorResultsMax}`,
      );
    }
    const unit = queryVector(index, options.vector);
    const filters = options.filters.map(([field, values]) => filterOf(index, { field, values }));
    const store = this.#current(index);
    const nearest = store === null
      ? this.#nearestOnDisk(table, { index, unit, filters, limit })
      : this.#nearestInMemory(store, { table, index, unit, filters, limit });
    return nearest.map(({ rid, score }) => {
      const id = this.#connection.statement(table.sql.getId).get(rid)?.[0];
      return { id: id as string, score };
    });
  }

  #nearestInMemory(
    store: VectorStore,
    query: {
      readonly table: Table;
      readonly index: VectorIndex;
      readonly unit: Float64Array<ArrayBuffer>;
      readonly filters: readonly Filter[];
      readonly limit: number;
    },
  ): ScoredRow[] {
    const { table, index, unit, limit } = query;
    const { count, scores, margins, rids } = store.compare(encodeQuery(unit), query.filters);
    const threshold = largestOf(limit, { count, at: (row) => (scores[row] ?? 0) - (margins[row] ?? 0) });
    const best: ScoredRow[] = [];
    const get = this.#connection.statement(index.sql.get);
    for (let row = 0; row < count; row++) {
      if ((scores[row] ?? 0) + (margins[row] ?? 0) < threshold) continue;
      const rid = rids[row] ?? 0;
      best.push({ rid, score: dot(unit, floatsOf(get.get(rid)?.[0])) });
    }
    return this.#best(table, best, limit);
  }

  #nearestOnDisk(
    table: Table,
    query: {
      readonly index: VectorIndex;
      readonly unit: Float64Array<ArrayBuffer>;
      readonly filters: readonly Filter[];
      readonly limit: number;
    },
  ): ScoredRow[] {
    const { index, unit, filters, limit } = query;
    let best: ScoredRow[] = [];
    for (const [rid, vector, text] of this.#pages(index)) {
      const keys = JSON.parse(text) as string[];
      if (!filters.every((filter) => filter.keys.includes(keys[filter.field] ?? ""))) continue;
      best.push({ rid, score: dot(unit, floatsOf(vector)) });
      if (best.length >= 2 * limit + PAGE_ROWS) best = this.#best(table, best, limit);
    }
    return this.#best(table, best, limit);
  }

  /** Returns the first `limit` rows by score, then creation time, then id. */
  #best(table: Table, rows: readonly ScoredRow[], limit: number): ScoredRow[] {
    const sorted = rows.toSorted((a, b) => b.score - a.score);
    const last = sorted[limit - 1]?.score ?? -Infinity;
    const first = sorted.filter(({ score }) => score >= last);
    const rids = inCreationOrder(this.#connection, table, first);
    // Only rows with equal scores change places.
    return rids.slice(0, limit).map((rid, place) => ({ rid, score: first[place]?.score ?? 0 }));
  }

  /** Returns the index as of now; `null` if it is too large for memory. */
  #current(index: VectorIndex): VectorStore | null {
    const row = this.#connection.statement(index.sql.changeRange).get();
    const [oldest, newest] = [row?.[0] ?? 0, row?.[1] ?? 0] as [number, number];
    const loaded = this.#loaded.get(index.number);
    this.#loaded.delete(index.number);
    if (loaded !== undefined && loaded.seq >= oldest - 1 && loaded.seq <= newest) {
      const { store } = loaded;
      if (store !== null && loaded.seq < newest) this.#catchUp(store, { index, seq: loaded.seq });
      this.#loaded.set(index.number, { store: store?.cluttered ? this.#load(index) : store, seq: newest });
    } else {
      this.#loaded.set(index.number, { store: this.#load(index), seq: newest });
    }
    this.#evict(index.number);
    return this.#loaded.get(index.number)?.store ?? null;
  }

  #catchUp(store: VectorStore, { index, seq }: { readonly index: VectorIndex; readonly seq: number }): void {
    const rows = this.#connection.statement(index.sql.changedSince).all(seq) as [
      number,
      unknown,
      string | null,
    ][];
    for (const [rid, vector, filters] of rows) {
      if (filters === null) store.remove(rid);
      else store.put(rid, { vector: floatsOf(vector), filters });
    }
  }

  #load(index: VectorIndex): VectorStore | null {
    const store = new VectorStore(index);
    for (const [rid, vector, filters] of this.#pages(index)) {
      store.put(rid, { vector: floatsOf(vector), filters });
      if (store.bytes > this.#bytesMax) return null;
    }
    return store;
  }

  *#pages(index: VectorIndex): Generator<[rid: number, vector: unknown, filters: string], void> {
    let last = Number.MIN_SAFE_INTEGER;
    for (;;) {
      const rows = this.#connection.statement(index.sql.page).all(last, PAGE_ROWS) as [
        number,
        unknown,
        string,
      ][];
      for (const row of rows) yield row;
      const end = rows.at(-1);
      if (end === undefined || rows.length < PAGE_ROWS) return;
      last = end[0];
    }
  }

  /** Evicts least recently used indexes until the rest fits. */
  #evict(keep: number): void {
    let bytes = 0;
    for (const { store } of this.#loaded.values()) bytes += store?.bytes ?? 0;
    for (const [number, { store }] of this.#loaded) {
      if (bytes <= this.#bytesMax || number === keep) return;
      this.#loaded.delete(number);
      bytes -= store?.bytes ?? 0;
    }
  }
}

function queryVector(index: VectorIndex, vector: readonly number[]): Float64Array<ArrayBuffer> {
  const { name, dimensions } = index;
  if (!Array.isArray(vector) || vector.length !== dimensions || !vector.every(Number.isFinite)) {
    throw new EngineError(
      "bad_search",
      `Cannot search in index "${name}": the vector must be ${dimensions} numbers`,
    );
  }
  if (vector.every((part) => part === 0)) {
    throw new EngineError(
      "bad_search",
      `Cannot search in index "${name}": a vector of zeros has no direction`,
    );
  }
  return unitVector(vector);
}

function filterOf(
  { name, filterFields }: VectorIndex,
  request: { readonly field: string; readonly values: VectorSearchOptions["filters"][number][1] },
): Filter {
  const field = filterFields.indexOf(request.field);
  if (field < 0) {
    throw new EngineError(
      "bad_search",
      `Cannot filter by "${request.field}" in index "${name}": its filter fields are ` +
        (filterFields.length === 0 ? "none" : filterFields.join(", ")),
    );
  }
  return { field, keys: request.values.map(valueKey) };
}

function floatsOf(blob: unknown): Float32Array<ArrayBuffer> {
  // A copy, because float32 arrays need an aligned buffer.
  return new Float32Array((blob as Uint8Array<ArrayBuffer>).slice().buffer);
}

function dot(a: Float64Array<ArrayBuffer>, b: Float32Array<ArrayBuffer>): number {
  let sum = 0;
  for (let index = 0; index < a.length; index++) sum += (a[index] ?? 0) * (b[index] ?? 0);
  return sum;
}

/** Returns the `rank`th largest number, or `-Infinity` if there are fewer. */
function largestOf(
  rank: number,
  numbers: { readonly count: number; readonly at: (row: number) => number },
): number {
  // In descending order. `rank` is small, and few numbers exceed the last one.
  const top: number[] = [];
  for (let row = 0; row < numbers.count; row++) {
    const number = numbers.at(row);
    const last = top[top.length - 1] ?? -Infinity;
    if (top.length === rank && number <= last) continue;
    let position = top.length;
    while (position > 0 && (top[position - 1] ?? 0) < number) position--;
    top.splice(position, 0, number);
    if (top.length > rank) top.pop();
  }
  return top.length < rank ? -Infinity : top[rank - 1] ?? -Infinity;
}
