/**
 * All documents of a database at one moment, as they are stored, without the app's schema: what exports read.
 *
 * A snapshot is a connection of its own with an open read transaction. It holds up no writer, but while it is open the
 * write-ahead log behind it cannot be used again. A process that has one must not open and close the database's files by
 * other means than SQLite: that would take away SQLite's locks.
 */
import { engineLimits } from "../limits.ts";
import { loadTables, readCatalog, type Tables } from "../catalog.ts";
import { Connection, describeSqliteError, type Row } from "../connection.ts";
import { EngineError } from "../errors.ts";
import type { IndexBounds, SearchOptions } from "../read_options.ts";
import { checkedSearch, scanOf } from "../query.ts";
import type { ScanOwner } from "../indexes/scan.ts";
import { allMatchingRows } from "../search/matching_rows.ts";
import { passes, prepareSearch } from "../search/search_index.ts";
import type { StoredFields } from "../documents/stored_fields.ts";
import { functionLimits } from "../../limits.ts";
import { BY_CREATION_TIME, documentsTable } from "../table.ts";
import type { Doc, TableDefinition, Value } from "../types.ts";

const { exportRowsMax, exportBytesAimed } = engineLimits;
const { documentsReadMax } = functionLimits;

/** Which documents of a table are wanted, in the order of an index or of a search. */
export type ExportedRows =
  | { readonly index: string; readonly bounds: IndexBounds; readonly order: "asc" | "desc" }
  | { readonly search: string; readonly options: SearchOptions };

/** A document and its JSON text. */
export interface ExportedRow {
  readonly doc: Doc;
  readonly text: string;
}

/** The database at one moment. Disposing of it ends the snapshot; it may be done again. */
export interface ExportSnapshot extends Disposable {
  /** The newest commit it holds. */
  readonly ts: number;
  /** Names of all tables, those of the service and those that the app's schema no longer has included, sorted. */
  readonly tables: readonly string[];
  /** The number of each table, which its ids carry. */
  readonly numbers: ReadonlyMap<string, number>;
  /**
   * The JSON text of each document of a table, in the order in which they were inserted, a few read at once. Throws an
   * `EngineError` when there is no such table, or when the file is damaged.
   */
  documents(table: string): Generator<string, void, void>;
  /**
   * Documents of a table by an index, a few read at once, or all those that a search finds, which is ranked once however
   * often the same `wanted` is asked for. Indexes are those of the database. Throws as `documents` does, for an index or
   * bounds that do not fit, and before the first document for a search that finds more than one query may read.
   */
  rows(table: string, wanted: ExportedRows): Generator<ExportedRow, void, void>;
  /** How many documents a table has. Throws as `documents` does. */
  count(table: string): number;
}

/**
 * Opens an existing database, whether a server uses it or not. Throws an `UnusableDatabaseError` when the file is damaged,
 * foreign or newer.
 */
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
  /** Row ids that searches found, which hold as long as the snapshot does. */
  readonly #ranked = new WeakMap<ExportedRows, readonly number[]>();
  #open = true;

  constructor(connection: Connection, path: string) {
    this.#connection = connection;
    this.#path = path;
    // The snapshot begins with the first read.
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
        // Lengths are told without reading the documents, which may be the largest there are.
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
      const asked = {
        tables: loadTables(connection, new Map([[name, this.#definitionOf(name)]])),
        table: name,
      };
      if ("search" in wanted) {
        yield* this.#found(asked, wanted);
      } else {
        const { index, bounds, order } = wanted;
        for (const { doc } of scanOf(owner, { ...asked, index, bounds, options: { order } })) {
          yield { doc, text };
        }
      }
    } catch (error) {
      throw describeSqliteError(error, this.#path);
    }
  }

  /** The documents of a search, by score, then creation time, then id. */
  *#found(
    asked: { readonly tables: Tables; readonly table: string },
    wanted: Extract<ExportedRows, { readonly search: string }>,
  ): Generator<ExportedRow, void, void> {
    const connection = this.#connection;
    const { search, options } = wanted;
    const { table, index } = checkedSearch({ ...asked, index: search, options });
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
      if (passes(filters, doc)) yield { doc, text };
    }
  }

  /** A table as the database has it; its documents are not checked here. */
  #definitionOf(name: string): TableDefinition {
    const known = readCatalog(this.#connection).get(name);
    if (known === undefined) throw unknownTable(name);
    const of = (kind: string) =>
      known.indexes.filter((index) => index.kind === kind)
        .map(({ name, definition }) => ({ name, said: JSON.parse(definition) }));
    return {
      indexes: of("fields").filter(({ name }) => name !== BY_CREATION_TIME)
        .map(({ name, said: fields }) => ({ name, fields })),
      searchIndexes: of("search").map(({ name, said: [searchField, filterFields] }) => ({
        name,
        searchField,
        filterFields,
      })),
      vectorIndexes: [],
      validate: (fields) => fields as Record<string, Value>,
    };
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
    `The search finds more than ${documentsReadMax} documents, which is the most that are exported of one: ` +
      "search for rarer words, or add filters",
  );
}

function unknownTable(name: string): EngineError {
  return new EngineError("unknown_table", `There is no table "${name}"`);
}

/** Row id of the last of the rows that are read at once; `null` when there are none. */
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
