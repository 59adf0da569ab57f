/**
 * All documents of a database at one moment, as they are stored, without the app's schema: what exports read.
 *
 * A snapshot is a connection of its own with an open read transaction. It holds up no writer, but while it is open the
 * write-ahead log behind it cannot be used again. A process that has one must not open and close the database's files by
 * other means than SQLite: that would take away SQLite's locks.
 */
import { engineLimits } from "../limits.ts";
import { readCatalog } from "../catalog.ts";
import { Connection, inPlainWords, type Row } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { documentsTable } from "../table.ts";

const { exportRowsMax, exportBytesAimed } = engineLimits;

/** The database at one moment. Disposing of it ends the snapshot. */
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
    throw inPlainWords(error, path);
  }
}

class SqliteExportSnapshot implements ExportSnapshot {
  readonly ts: number;
  readonly tables: readonly string[];
  readonly numbers: ReadonlyMap<string, number>;
  readonly #connection: Connection;
  readonly #path: string;

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
      throw inPlainWords(error, this.#path);
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
        throw inPlainWords(error, this.#path);
      }
      for (const [text] of rows) yield text as string;
    }
  }

  #rowsOf(table: string): string {
    const number = this.numbers.get(table);
    if (number === undefined) throw new EngineError("unknown_table", `There is no table "${table}"`);
    return documentsTable(number);
  }

  [Symbol.dispose](): void {
    // Closing ends the transaction.
    this.#connection[Symbol.dispose]();
  }
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
