/**
 * A scan along an index. It reads rows lazily in growing chunks, each with one joined statement.
 *
 * A scan inside a mutation returns the rows of its start, even if the mutation writes: a loop that inserts into its own
 * table ends, and one that moves documents visits each once. The mutation notifies open scans of each write, and they
 * keep the original state of unread rows.
 */
import { engineLimits } from "../limits.ts";
import type { Connection, Row } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { keyAfter, type KeyRange } from "./keys.ts";
import type { ReadRange, ReadSetRecorder } from "../read_set.ts";
import type { Table } from "../table.ts";
import type { Doc } from "../types.ts";
import type { UsageMeter } from "../usage.ts";
import { ID_CHARS } from "../documents/ids.ts";
import type { ScanIndex } from "./field_index.ts";
import type { ScanRow } from "../read_options.ts";

const { parse } = JSON;

/** A row of a scan: index key, row id and JSON. */
export interface StoredRow {
  readonly key: string;
  readonly rid: number;
  readonly text: string;
}

export interface ScanOwner {
  readonly connection: Connection;
  /** `null` for mutations. */
  readonly recorder: ReadSetRecorder | null;
  /** Throws if the run has ended. */
  check(): void;
  /** Counts a row that the app receives. */
  noteDelivered(table: Table, row: StoredRow): void;
  /** Called with the first row and when no more rows can follow. */
  scanOpened(scan: Scan): void;
  scanClosed(scan: Scan): void;
}

export interface ScanSetup {
  readonly table: Table;
  readonly index: ScanIndex;
  readonly range: KeyRange;
  readonly order: "asc" | "desc";
  readonly expected: number | undefined;
}

const { scanRowsFirst, scanRowsFirstMax, scanRowsMax, scanCharsAimed } = engineLimits;
const DONE: IteratorResult<ScanRow, undefined> = { done: true, value: undefined };

export class Scan implements IterableIterator<ScanRow> {
  readonly table: Table;
  readonly index: ScanIndex;
  readonly #owner: ScanOwner;
  readonly #asc: boolean;
  /** The whole range, recorded as read at the end of the scan. */
  readonly #range: KeyRange;
  readonly #read: ReadRange | null;
  /** Start of the unread range. */
  #lo: string;
  #hi: string;
  #state: "new" | "open" | "last piece" | "ended" | "undone" = "new";
  #rows: readonly StoredRow[] = [];
  #next = 0;
  #pieceRows: number;
  /** Documents written since the scan began, and the original state of unread rows. */
  #touched: Set<string> | null = null;
  #skipped: StoredRow[] = [];

  constructor(owner: ScanOwner, { table, index, range, order, expected }: ScanSetup) {
    this.#owner = owner;
    this.table = table;
    this.index = index;
    this.#asc = order === "asc";
    this.#range = range;
    this.#lo = range.lo;
    this.#hi = range.hi;
    this.#read = owner.recorder?.beginRange(index.space) ?? null;
    this.#pieceRows = expected === undefined || !(expected >= 1)
      ? scanRowsFirst
      : Math.min(Math.ceil(expected), scanRowsFirstMax);
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<ScanRow, undefined> {
    if (this.#state === "ended") return DONE;
    this.#owner.check();
    if (this.#state === "undone") {
      throw new EngineError("ended", "The call this scan belongs to has failed and its writes were undone");
    }
    if (this.#state === "new") {
      this.#state = "open";
      this.#owner.scanOpened(this);
    }
    while (this.#next === this.#rows.length) {
      if (this.#state === "last piece") {
        this.#extendRead(null);
        this.#end();
        return DONE;
      }
      this.#readPiece();
    }
    // The loop above ensures that `#next` is less than the length.
    const row = this.#rows[this.#next++] as StoredRow;
    this.#extendRead(row.key);
    this.#owner.noteDelivered(this.table, row);
    return { done: false, value: { key: row.key, doc: parse(row.text) as Doc } };
  }

  return(): IteratorResult<ScanRow, undefined> {
    this.#end();
    return DONE;
  }

  /** Called before the mutation writes a document of the table, with its state in this index. */
  noteWrite(id: string, before: StoredRow | null): void {
    if (this.#touched?.has(id)) return;
    this.#touched ??= new Set();
    this.#touched.add(id);
    if (before !== null && before.key >= this.#lo && before.key < this.#hi) this.#skipped.push(before);
  }

  #readPiece(): void {
    const { scanSql } = this.index;
    const from = { lo: this.#lo, hi: this.#hi };
    const wanted = this.#pieceRows;
    const found = from.lo < from.hi
      ? this.#owner.connection.statement(this.#asc ? scanSql.asc : scanSql.desc).all(from.lo, from.hi, wanted)
      : [];
    let chars = 0;
    const rows = found.map((row) => {
      const stored = storedRow(row);
      chars += stored.text.length;
      return stored;
    });
    const last = rows.at(-1);
    if (last === undefined || rows.length < wanted) {
      this.#state = "last piece";
      if (this.#asc) this.#lo = from.hi;
      else this.#hi = from.lo;
    } else {
      if (this.#asc) this.#lo = keyAfter(last.key);
      else this.#hi = last.key;
      const fitting = Math.floor(scanCharsAimed / (chars / rows.length));
      this.#pieceRows = Math.max(1, Math.min(scanRowsMax, wanted * 4, fitting));
    }
    this.#rows = this.#touched === null ? rows : this.#atStart(rows, this.#touched);
    this.#next = 0;
  }

  /** Returns a chunk's rows as they were when the scan began. */
  #atStart(rows: readonly StoredRow[], touched: ReadonlySet<string>): StoredRow[] {
    const unread = (row: StoredRow) => row.key >= this.#lo && row.key < this.#hi;
    const result = rows.filter((row) => !touched.has(row.key.slice(-ID_CHARS)));
    for (const row of this.#skipped) if (!unread(row)) result.push(row);
    this.#skipped = this.#skipped.filter(unread);
    const sign = this.#asc ? 1 : -1;
    return result.sort((a, b) => a.key < b.key ? -sign : a.key > b.key ? sign : 0);
  }

  /** Extends the read range to a row, or to the end. */
  #extendRead(key: string | null): void {
    const { recorder } = this.#owner;
    if (this.#read === null || recorder === null) return;
    const { lo, hi } = this.#range;
    if (key === null) recorder.extendRange(this.#read, lo, hi);
    else if (this.#asc) recorder.extendRange(this.#read, lo, keyAfter(key));
    else recorder.extendRange(this.#read, key, hi);
  }

  /** Called when the mutation undoes writes that the scan may have returned. */
  invalidate(): void {
    this.#end();
    this.#state = "undone";
  }

  #end(): void {
    if (this.#state === "open" || this.#state === "last piece") this.#owner.scanClosed(this);
    this.#state = "ended";
    this.#rows = [];
    this.#next = 0;
    this.#skipped = [];
  }
}

/** Returns the first documents of a scan, and ends it. */
export function firstOf(scan: IterableIterator<ScanRow>, count: number): Doc[] {
  const docs: Doc[] = [];
  for (const { doc } of scan) if (docs.push(doc) === count) break;
  return docs;
}

/**
 * Reads the first documents of a range in a query. SQLite joins the documents of a chunk into one string, which is parsed at
 * once: that takes half the time of a scan.
 */
export function takeDocuments(
  { connection, recorder, usage }: {
    readonly connection: Connection;
    readonly recorder: ReadSetRecorder;
    readonly usage: UsageMeter;
  },
  { index, range, order, count }: Pick<ScanSetup, "index" | "range" | "order"> & { readonly count: number },
): Doc[] {
  const statement = connection.statement(index.takeSql[order]);
  const read = recorder.beginRange(index.space);
  const docs: Doc[] = [];
  let { lo, hi } = range;
  let rows = Math.min(count, scanRowsFirstMax);
  while (lo < hi) {
    const [last, text] = statement.get(lo, hi, rows) as [string, string] | [null, null];
    if (text === null) break;
    const chunk = parse(`[${text}]`) as Doc[];
    const isEnd = chunk.length < rows;
    if (isEnd) recorder.extendRange(read, range.lo, range.hi);
    else if (order === "asc") recorder.extendRange(read, range.lo, lo = keyAfter(last));
    else recorder.extendRange(read, hi = last, range.hi);
    // Without the commas between documents.
    const chars = text.length - chunk.length + 1;
    usage.found(chars, chunk.length);
    for (const doc of chunk) docs.push(doc);
    if (isEnd || docs.length === count) return docs;
    const fitting = Math.max(1, Math.floor(scanCharsAimed / (chars / chunk.length)));
    rows = Math.min(scanRowsMax, count - docs.length, fitting);
  }
  recorder.extendRange(read, range.lo, range.hi);
  return docs;
}

function storedRow([key, rid, text]: Row): StoredRow {
  // The columns of every scan statement.
  return { key: key as string, rid: rid as number, text: text as string };
}
