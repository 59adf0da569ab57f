/** The complete check of a database in use: in a snapshot, so that it sees one state whoever writes meanwhile. */
import type { CatalogTable } from "../catalog.ts";
import { Connection } from "../connection.ts";
import { asUnusableDatabase, checkFile, checkIndexes, type OnProgress } from "./check_database.ts";

/** A database at one moment. While it is held, the write-ahead log behind it cannot be used again. */
export interface SnapshotCheck extends Disposable {
  /** Checks the file. Throws an `UnusableDatabaseError` with the fault. */
  file(): { readonly ts: number; readonly lastCreationTime: number };
  /** Checks every document against every index, in a file that was found sound. Throws as above. */
  indexes(onChecked?: OnProgress): { readonly tables: number; readonly documents: number };
}

/** Holds the present state of a database. Throws an `UnusableDatabaseError` when it is missing, foreign, newer or damaged. */
export function openSnapshotCheck(path: string): SnapshotCheck {
  let connection: Connection | undefined;
  try {
    connection = Connection.openReader(path);
    // The snapshot begins with the first read.
    connection.execute("BEGIN");
    connection.statement("SELECT count(*) FROM sqlite_schema").get();
    return new SqliteCheckup(connection, path);
  } catch (error) {
    connection?.[Symbol.dispose]();
    throw asUnusableDatabase(path, error);
  }
}

class SqliteCheckup implements SnapshotCheck {
  readonly #connection: Connection;
  readonly #path: string;
  #catalog: readonly CatalogTable[] | null = null;

  constructor(connection: Connection, path: string) {
    this.#connection = connection;
    this.#path = path;
  }

  file(): { readonly ts: number; readonly lastCreationTime: number } {
    return this.#checked(() => {
      const { ts, catalog } = checkFile(this.#connection);
      this.#catalog = catalog;
      const [last] = this.#connection.statement("SELECT lastCreationTime FROM syncline_state").get() ?? [];
      return { ts, lastCreationTime: Number(last) };
    });
  }

  indexes(onChecked?: OnProgress): { readonly tables: number; readonly documents: number } {
    const catalog = this.#catalog;
    if (catalog === null) throw new RangeError("The file was not found sound");
    return this.#checked(() => ({
      tables: catalog.length,
      documents: checkIndexes(this.#connection, catalog, onChecked),
    }));
  }

  #checked<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      throw asUnusableDatabase(this.#path, error);
    }
  }

  [Symbol.dispose](): void {
    // Closing ends the transaction.
    this.#connection[Symbol.dispose]();
  }
}
