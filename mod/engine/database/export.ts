/**
 * Reads all documents of a database in one snapshot, as stored and without the app's schema, for exports.
 *
 * The snapshot is a read transaction of its own connection. It blocks no writer, but the write-ahead log cannot be
 * reused while it is open. The process must not open and close the database's files without SQLite: that would release
 * SQLite's locks.
 */
import { engineLimits } from "../limits.ts";
import { loadTables, readCatalog, storedDefinition, type Tables } from "../catalog.ts";
import { Connection, describeSqliteError, type Row } from "../connection.ts";
import { EngineError } from "../errors.ts";
import type { IndexBounds, SearchOptions } from "../read_options.ts";
import { checkedSearch, scanOf } from "../query.ts";
import type { ScanOwner } from "../indexes/scan.ts";
import { allMatchingRows } from "../search/search.ts";
import { matchesFilters, prepareSearch } from "../search/search_index.ts";
import { decodeId } from "../documents/ids.ts";
import type { StoredFields } from "../documents/system_fields.ts";
import { functionLimits } from "../../limits.ts";
import { documentsTable } from "../table.ts";
import type { Doc, TableDefinition } from "../types.ts";

const { exportRowsMax, exportBytesAimed } = engineLimits;
const { documentsReadMax } = functionLimits;

export type ExportedRows =
  | { readonly index: string; readonly bounds: IndexBounds; readonly order: "asc" | "desc" }
  | { readonly search: string; readonly options: SearchOptions };

/** A document and its JSON. */
export interface ExportedRow {
  readonly doc: Doc;
  readonly text: string;
}

/** A snapshot. Dispose ends it and may be repeated. */
export interface ExportSnapshot extends Disposable {
  readonly ts: number;
  /** Sorted names of all tables, including those of the service and those that are no longer in the schema. */
  readonly tables: readonly string[];
  /** Table numbers, which ids contain. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Yields each document as JSON in insertion order. Throws an `EngineError` for an unknown table or a damaged file. */
  documents(table: string): Generator<string, void, void>;
  /**
   * Yields documents by an index, or all results of a search. A search is ranked once for each `wanted` object. Indexes
   * are those of the database. Throws as `documents` does, for an unknown index or invalid bounds, and for a search
   * with more results than one query may read.
   */
  rows(table: string, wanted: ExportedRows): Generator<ExportedRow, void, void>;
  /** Returns a document as JSON; `null` if there is none with this ID. Throws an `EngineError` for a damaged file. */
  document(id: string): string | null;
  /** Returns the number of documents. Throws as `documents` does. */
  count(table: string): number;
}

/** Opens a database, in use or not. Throws an `UnusableDatabaseError` if the file is damaged, foreign or newer. */
export function openExport(path: string): ExportSnapshot {
  const connection = Connection.openReader(path);
  try {
    return new SqliteExportSnapshot(connection, path);
  } catch (error) {
    connection[Symbol.dispose]();
    throw describeSqliteError(error, path);
  }
}

class SqliteExportSnapshot implements ExportSnapshot {
  readonly ts: number;
  readonly tables: readonly string[];
  readonly numbers: ReadonlyMap<string, number>;
  readonly #connection: Connection;
  readonly #path: string;
  /** Row ids of searches, valid for the snapshot. */
  readonly #ranked = new WeakMap<ExportedRows, readonly number[]>();
  #open = true;

  constructor(connection: Connection, path: string) {
    this.#connection = connection;
    this.#path = path;
    // The snapshot starts with the first read.
    connection.execute("BEGIN");
    this.ts = connection.statement("SELECT ts FROM syncline_state").get()?.[0] as number;
    this.numbers = new Map([...readCatalog(connection).values()].map(({ name, number }) => [name, number]));
    this.tables = [...this.numbers.keys()].sort();
  }

  count(table: string): number {
    try {
      const [[count] = []] = this.#connection.statement(`SELECT count(*) FROM ${this.#rowsOf(table)}`).all();
      return count as number;
    } catch (error) {
      throw describeSqliteError(error, this.#path);
    }
  }

  document(id: string): string | null {
    const number = decodeId(id)?.tableNumber;
    if (number === undefined || ![...this.numbers.values()].includes(number)) return null;
    try {
      const read = this.#connection.statement(`SELECT doc FROM ${documentsTable(number)} WHERE id = ?`);
      return (read.get(id)?.[0] ?? null) as string | null;
    } catch (error) {
      throw describeSqliteError(error, this.#path);
    }
  }

  *documents(table: string): Generator<string, void, void> {
    const documents = this.#rowsOf(table);
    const lengths = this.#connection.statement(
      `SELECT rid, octet_length(doc) FROM ${documents} WHERE rid > ? ORDER BY rid LIMIT ${exportRowsMax}`,
    );
    const texts = this.#connection.statement(
      `SELECT doc FROM ${documents} WHERE rid > ? AND rid <= ? ORDER BY rid`,
    );
    let after = Number.MIN_SAFE_INTEGER;
    for (;;) {
      let rows: readonly Row[];
      try {
        // Lengths are read without the documents, which may be very large.
        const last = lastOfPiece(lengths.all(after) as [number, number][]);
        if (last === null) return;
        rows = texts.all(after, last);
        after = last;
      } catch (error) {
        throw describeSqliteError(error, this.#path);
      }
      for (const [text] of rows) yield text as string;
    }
  }

  *rows(name: string, wanted: ExportedRows): Generator<ExportedRow, void, void> {
    const connection = this.#connection;
    let text = "";
    const owner: ScanOwner = {
      connection,
      recorder: null,
      check: () => {},
      noteDelivered: (_table, row) => void (text = row.text),
      scanOpened: () => {},
      scanClosed: () => {},
    };
    try {
      const request = {
        tables: loadTables(connection, new Map([[name, this.#definitionOf(name)]])),
        table: name,
      };
      if ("search" in wanted) {
        yield* this.#found(request, wanted);
      } else {
        const { index, bounds, order } = wanted;
        for (const { doc } of scanOf(owner, { ...request, index, bounds, options: { order } })) {
          yield { doc, text };
        }
      }
    } catch (error) {
      throw describeSqliteError(error, this.#path);
    }
  }

  /** Yields the results of a search by score, then creation time, then id. */
  *#found(
    request: { readonly tables: Tables; readonly table: string },
    wanted: Extract<ExportedRows, { readonly search: string }>,
  ): Generator<ExportedRow, void, void> {
    const connection = this.#connection;
    const { search, options } = wanted;
    const { table, index } = checkedSearch({ ...request, index: search, options });
    const { match, filters } = prepareSearch(index, options);
    if (match === null) return;
    let rids = this.#ranked.get(wanted);
    if (rids === undefined) {
      rids = allMatchingRows(connection, { table, index, match, max: documentsReadMax }) ?? tooMany();
      this.#ranked.set(wanted, rids);
    }
    for (const rid of rids) {
      const [, text] = connection.statement(table.sql.getRow).get(rid) as [id: string, text: string];
      const doc = JSON.parse(text) as Doc & StoredFields;
      if (matchesFilters(filters, doc)) yield { doc, text };
    }
  }

  /** Returns a table's definition without validation. */
  #definitionOf(name: string): TableDefinition {
    const known = readCatalog(this.#connection).get(name);
    if (known === undefined) throw unknownTable(name);
    return storedDefinition(known);
  }

  #rowsOf(table: string): string {
    const number = this.numbers.get(table);
    if (number === undefined) throw unknownTable(table);
    return documentsTable(number);
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    // Closing ends the transaction.
    this.#connection[Symbol.dispose]();
  }
}

function tooMany(): never {
  throw new EngineError(
    "bad_search",
    `The search finds more than ${documentsReadMax} documents, the limit for one export: ` +
      "search for rarer words, or add filters",
  );
}

function unknownTable(name: string): EngineError {
  return new EngineError("unknown_table", `There is no table "${name}"`);
}

/** Returns the last row id of the next read; `null` if there is none. */
function lastOfPiece(rows: readonly (readonly [rid: number, bytes: number])[]): number | null {
  let sum = 0;
  let last: number | null = null;
  for (const [rid, bytes] of rows) {
    sum += bytes;
    if (last !== null && sum > exportBytesAimed) break;
    last = rid;
  }
  return last;
}
