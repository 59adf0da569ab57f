/**
 * A walk along one index. Rows are read in growing pieces, each by one joined statement, and only as they are asked for.
 *
 * A walk inside a mutation shows the rows as they were when it began, whatever the mutation writes meanwhile: a loop
 * that inserts into the table it walks ends, and one that moves documents meets each of them once. For that the
 * mutation tells its open walks of each write, and the walk keeps the rows it has not read yet as they were.
 */
import { engineLimits } from "../limits.ts";
import type { Connection, Row } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { keyAfter, type KeyRange } from "./keys.ts";
import type { ReadRange, ReadSetRecorder } from "../read_set.ts";
import type { Table } from "../table.ts";
import type { Doc } from "../types.ts";
import type { ScanIndex } from "./field_index.ts";
import type { ScanRow } from "../read_options.ts";

const { parse } = JSON;

/** A row of a scan: index key, row id and JSON text. */
export interface StoredRow {
  readonly key: string;
  readonly rid: number;
  readonly text: string;
}

/** The run a scan belongs to. */
export interface ScanOwner {
  readonly connection: Connection;
  /** `null` for mutations, which record nothing. */
  readonly recorder: ReadSetRecorder | null;
  /** Throws when the run has ended. */
  check(): void;
  /** Counts a row the app is about to see. */
  noteDelivered(table: Table, row: StoredRow): void;
  /** Called when the first row is asked for, and when no further row can be. */
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
const ID_CHARS = 26;

export class Scan implements IterableIterator<ScanRow> {
  readonly table: Table;
  readonly index: ScanIndex;
  readonly #owner: ScanOwner;
  readonly #asc: boolean;
  /** The whole range: what has been read once the end is reached. */
  readonly #range: KeyRange;
  readonly #read: ReadRange | null;
  /** What has not been read from the database yet. */
  #lo: string;
  #hi: string;
  #state: "new" | "open" | "last piece" | "ended" | "undone" = "new";
  #rows: readonly StoredRow[] = [];
  #next = 0;
  #pieceRows: number;
  /** Documents the mutation wrote since the walk began, and the unread rows among them as they were then. */
  #touched: Set<string> | null = null;
  #kept: StoredRow[] = [];

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
    // `#next` is below the length: the loop above saw to it.
    const row = this.#rows[this.#next++] as StoredRow;
    this.#extendRead(row.key);
    this.#owner.noteDelivered(this.table, row);
    return { done: false, value: { key: row.key, doc: parse(row.text) as Doc } };
  }

  return(): IteratorResult<ScanRow, undefined> {
    this.#end();
    return DONE;
  }

  /** Called by the mutation with each document of the table it writes: its key in this index and its state before. */
  noteWrite(id: string, before: StoredRow | null): void {
    if (this.#touched?.has(id)) return;
    this.#touched ??= new Set();
    this.#touched.add(id);
    if (before !== null && before.key >= this.#lo && before.key < this.#hi) this.#kept.push(before);
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

  /** The rows of a piece as they were when the walk began. */
  #atStart(rows: readonly StoredRow[], touched: ReadonlySet<string>): StoredRow[] {
    const unread = (row: StoredRow) => row.key >= this.#lo && row.key < this.#hi;
    const result = rows.filter((row) => !touched.has(row.key.slice(-ID_CHARS)));
    for (const row of this.#kept) if (!unread(row)) result.push(row);
    this.#kept = this.#kept.filter(unread);
    const sign = this.#asc ? 1 : -1;
    return result.sort((a, b) => a.key < b.key ? -sign : a.key > b.key ? sign : 0);
  }

  /** Moves the end of what was read to a row, or to the end of the range. */
  #extendRead(key: string | null): void {
    const { recorder } = this.#owner;
    if (this.#read === null || recorder === null) return;
    const { lo, hi } = this.#range;
    if (key === null) recorder.extendRange(this.#read, lo, hi);
    else if (this.#asc) recorder.extendRange(this.#read, lo, keyAfter(key));
    else recorder.extendRange(this.#read, key, hi);
  }

  /** Called by the mutation when it undoes what the scan may have seen. */
  invalidate(): void {
    this.#end();
    this.#state = "undone";
  }

  #end(): void {
    if (this.#state === "open" || this.#state === "last piece") this.#owner.scanClosed(this);
    this.#state = "ended";
    this.#rows = [];
    this.#next = 0;
    this.#kept = [];
  }
}

function storedRow([key, rid, text]: Row): StoredRow {
  // The columns of every scan statement.
  return { key: key as string, rid: rid as number, text: text as string };
}
