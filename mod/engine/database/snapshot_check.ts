/** The complete check of a database in use, in one snapshot. */
import type { CatalogTable } from "../catalog.ts";
import { Connection } from "../connection.ts";
import { asUnusableDatabase, checkFile, checkIndexes, type OnProgress } from "./check_database.ts";

/** A snapshot to check. While it is open, the write-ahead log cannot be reused. */
export interface SnapshotCheck extends Disposable {
  /** Checks the file. Throws an `UnusableDatabaseError` with the reason. */
  file(): { readonly ts: number; readonly lastCreationTime: number };
  /** Checks every document in every index of a valid file. Throws as above. */
  indexes(onChecked?: OnProgress): { readonly tables: number; readonly documents: number };
}

/** Opens a snapshot. Throws an `UnusableDatabaseError` if the file is missing, foreign, newer or damaged. */
export function openSnapshotCheck(path: string): SnapshotCheck {
  let connection: Connection | undefined;
  try {
    connection = Connection.openReader(path);
    // The snapshot starts with the first read.
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
    if (catalog === null) throw new RangeError("Check the file before its indexes");
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
