/** Reads of queries and mutations: documents, scans and searches, with recording and limits. */
import { type AggregateOwner, AggregateRange } from "./aggregates/aggregate_range.ts";
import { checkComparable, rangeOfScan } from "./indexes/bounds.ts";
import type { Tables } from "./catalog.ts";
import type { Connection } from "./connection.ts";
import { EngineError } from "./errors.ts";
import { type Inspection, inspectionOf } from "./database/inspection.ts";
import { ReadSetRecorder } from "./read_set.ts";
import { countRange } from "./indexes/range_count.ts";
import { firstOf, Scan, type ScanOwner, type StoredRow, takeDocuments } from "./indexes/scan.ts";
import type { SearchIndex } from "./search/search_index.ts";
import { searchDocuments, type SearchOwner } from "./search/search.ts";
import type { Table } from "./table.ts";
import type { ReadTransaction } from "./transaction.ts";
import type { Doc, ReadSet } from "./types.ts";
import { UsageMeter } from "./usage.ts";
import type { VectorSearcher } from "./vectors/vector_search.ts";
import type {
  IndexBounds,
  ScanOptions,
  ScanRow,
  SearchOptions,
  TakeOptions,
  VectorSearchOptions,
} from "./read_options.ts";

const { parse } = JSON;

/** Fewer documents are read one by one, which is faster for them. */
const TAKEN_AT_ONCE_MIN = 16;

/** A connection's snapshot, shared with the queries in it. */
export interface Snapshot {
  open: boolean;
}

export interface QuerySetup {
  readonly connection: Connection;
  readonly tables: Tables;
  readonly snapshot: Snapshot;
  readonly vectors: VectorSearcher;
}

export class QueryTransaction implements ReadTransaction, SearchOwner, AggregateOwner {
  readonly connection: Connection;
  readonly recorder = new ReadSetRecorder();
  readonly usage = new UsageMeter();
  readonly vectors: VectorSearcher;
  readonly #tables: Tables;
  readonly #snapshot: Snapshot;

  constructor({ connection, tables, snapshot, vectors }: QuerySetup) {
    this.connection = connection;
    this.vectors = vectors;
    this.#tables = tables;
    this.#snapshot = snapshot;
  }

  get(id: string): Doc | null {
    this.check();
    const table = this.#tables.ofId(id);
    if (table === undefined) return null;
    this.recorder.point(table.space, id);
    const row = this.connection.statement(table.sql.get).get(id);
    if (row === undefined) return null;
    const text = row[1] as string;
    this.usage.read(text.length);
    return parse(text) as Doc;
  }

  tableOf(id: string): string | null {
    return this.#tables.ofId(id)?.name ?? null;
  }

  scan(table: string, index: string, bounds: IndexBounds, options: ScanOptions): IterableIterator<ScanRow> {
    this.check();
    return scanOf(this, { tables: this.#tables, table, index, bounds, options });
  }

  take(table: string, index: string, bounds: IndexBounds, options: TakeOptions): Doc[] {
    const { order, count } = options;
    if (count < TAKEN_AT_ONCE_MIN) {
      return firstOf(this.scan(table, index, bounds, { order, expected: count }), count);
    }
    this.check();
    return takeOf(this, { tables: this.#tables, table, index, bounds, options });
  }

  count(table: string, index: string, bounds: IndexBounds): number {
    this.check();
    return countOf(this, { tables: this.#tables, table, index, bounds });
  }

  aggregate(table: string, aggregate: string, bounds: IndexBounds): AggregateRange {
    this.check();
    return new AggregateRange(this, { tables: this.#tables, table, aggregate, bounds });
  }

  search(table: string, index: string, options: SearchOptions): IterableIterator<Doc> {
    this.check();
    return searchOf(this, { tables: this.#tables, table, index, options });
  }

  vectorSearch(table: string, index: string, options: VectorSearchOptions): { id: string; score: number }[] {
    this.check();
    const { vectors, recorder } = this;
    return vectorSearchOf({ tables: this.#tables, vectors, recorder, table, index, options });
  }

  readSet(): ReadSet {
    return this.recorder.readSet();
  }

  inspect(): Inspection {
    this.check();
    const { connection, recorder } = this;
    return inspectionOf({ connection, recorder, tables: this.#tables });
  }

  check(): void {
    if (!this.#snapshot.open) throw endedError();
  }

  noteDelivered(_table: Table, row: StoredRow): void {
    this.usage.found(row.text.length);
  }

  beforeSearch(): void {}

  beforeAggregate(): void {}

  scanOpened(): void {}

  scanClosed(): void {}
}

/** Starts a scan after checking table, index and bounds. */
export function scanOf(
  owner: ScanOwner,
  request: {
    readonly tables: Tables;
    readonly table: string;
    readonly index: string;
    readonly bounds: IndexBounds;
    readonly options: ScanOptions;
  },
): Scan {
  const { tables, bounds, options } = request;
  const table = tables.named(request.table);
  const index = tables.index(table, request.index);
  const range = rangeOfScan(table, { index, bounds, options });
  return new Scan(owner, { table, index, range, order: options.order, expected: options.expected });
}

/** Reads the first documents of a range after checking table, index and bounds. */
function takeOf(
  owner: Pick<QueryTransaction, "connection" | "recorder" | "usage">,
  request: {
    readonly tables: Tables;
    readonly table: string;
    readonly index: string;
    readonly bounds: IndexBounds;
    readonly options: TakeOptions;
  },
): Doc[] {
  const { tables, bounds, options: { order, count } } = request;
  const table = tables.named(request.table);
  const index = tables.index(table, request.index);
  const range = rangeOfScan(table, { index, bounds, options: { order } });
  return takeDocuments(owner, { index, range, order, count });
}

/** Counts the entries of an index range in SQL, without reading documents. Records the whole range as read. */
export function countOf(
  owner: Pick<ScanOwner, "connection" | "recorder"> & { readonly usage: UsageMeter },
  request: {
    readonly tables: Tables;
    readonly table: string;
    readonly index: string;
    readonly bounds: IndexBounds;
  },
): number {
  const { connection, recorder, usage } = owner;
  const table = request.tables.named(request.table);
  const index = request.tables.index(table, request.index);
  const { lo, hi } = rangeOfScan(table, { index, bounds: request.bounds, options: { order: "asc" } });
  recorder?.extendRange(recorder.beginRange(index.space), lo, hi);
  // One more than allowed, which is an error.
  const count = countRange(connection, index.countSql, { lo, hi, max: usage.entriesLeft + 1 });
  usage.counted(count);
  return count;
}

/** Starts a search after checking table, index and filters. */
export function searchOf(
  owner: SearchOwner,
  request: {
    readonly tables: Tables;
    readonly table: string;
    readonly index: string;
    readonly options: SearchOptions;
  },
): IterableIterator<Doc> {
  return searchDocuments(owner, checkedSearch(request));
}

/** Returns table, index and options of a search. Throws an `EngineError` if they do not match. */
export function checkedSearch(request: {
  readonly tables: Tables;
  readonly table: string;
  readonly index: string;
  readonly options: SearchOptions;
}): { readonly table: Table; readonly index: SearchIndex; readonly options: SearchOptions } {
  const { options } = request;
  const table = request.tables.named(request.table);
  const index = request.tables.searchIndex(table, request.index);
  for (const [field, value] of options.filters) checkComparable(value, `filter field "${field}"`);
  return { table, index, options };
}

/** Runs a vector search after checking table, index and filters. */
export function vectorSearchOf(
  request: {
    readonly tables: Tables;
    readonly vectors: VectorSearcher;
    readonly recorder: ReadSetRecorder | null;
    readonly table: string;
    readonly index: string;
    readonly options: VectorSearchOptions;
  },
): { id: string; score: number }[] {
  const table = request.tables.named(request.table);
  const index = request.tables.vectorIndex(table, request.index);
  for (const [field, values] of request.options.filters) {
    for (const value of values) checkComparable(value, `filter field "${field}"`);
  }
  request.recorder?.point(index.space, "");
  return request.vectors.search(table, { index, options: request.options });
}

/** The error for a transaction used after its run. */
export function endedError(): EngineError {
  return new EngineError(
    "ended",
    "The call this database view belongs to has ended; await everything it does before it returns",
  );
}
