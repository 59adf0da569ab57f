/** The reading half of every run: documents by id, scans and searches, with what they read recorded and counted. */
import { rangeOfScan } from "./bounds.ts";
import type { Tables } from "./catalog.ts";
import type { Connection } from "./connection.ts";
import { EngineError } from "./errors.ts";
import { ReadSetRecorder } from "./read_set.ts";
import { Scan, type ScanOwner, type StoredRow } from "./scan.ts";
import type { Table } from "./table.ts";
import type {
  IndexBounds,
  ReadTransaction,
  ScanOptions,
  ScanRow,
  SearchOptions,
  VectorSearchOptions,
} from "./transaction.ts";
import type { Doc, ReadSet } from "./types.ts";
import { UsageMeter } from "./usage.ts";

const { parse } = JSON;

/** A snapshot of a connection, as the views inside it see it. */
export interface Snapshot {
  open: boolean;
}

export interface QuerySetup {
  readonly connection: Connection;
  readonly tables: Tables;
  readonly snapshot: Snapshot;
}

/** The view of one query run inside the open snapshot of a connection. */
export class QueryTransaction implements ReadTransaction, ScanOwner {
  readonly connection: Connection;
  readonly recorder = new ReadSetRecorder();
  readonly usage = new UsageMeter();
  readonly #tables: Tables;
  readonly #snapshot: Snapshot;

  constructor({ connection, tables, snapshot }: QuerySetup) {
    this.connection = connection;
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

  search(_table: string, _index: string, _options: SearchOptions): IterableIterator<Doc> {
    throw new EngineError("bad_search", "Search indexes are not available");
  }

  vectorSearch(
    _table: string,
    _index: string,
    _options: VectorSearchOptions,
  ): { id: string; score: number }[] {
    throw new EngineError("bad_search", "Vector indexes are not available");
  }

  readSet(): ReadSet {
    return this.recorder.readSet();
  }

  check(): void {
    if (!this.#snapshot.open) throw endedError();
  }

  delivered(_table: Table, row: StoredRow): void {
    this.usage.read(row.text.length);
  }

  opened(): void {}

  closed(): void {}
}

/** A scan of a run, its table, index and bounds checked. */
export function scanOf(
  owner: ScanOwner,
  asked: {
    readonly tables: Tables;
    readonly table: string;
    readonly index: string;
    readonly bounds: IndexBounds;
    readonly options: ScanOptions;
  },
): Scan {
  const { tables, bounds, options } = asked;
  const table = tables.named(asked.table);
  const index = tables.index(table, asked.index);
  const range = rangeOfScan(table, { index, bounds, options });
  return new Scan(owner, { table, index, range, order: options.order, expected: options.expected });
}

/** For views used after their run. */
export function endedError(): EngineError {
  return new EngineError(
    "ended",
    "The call this database view belongs to has ended; await everything it does before it returns",
  );
}
