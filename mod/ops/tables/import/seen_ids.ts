/** Set of IDs in a file with their lines, in bounded memory: large sets are stored on disk. */
import { DatabaseSync, type StatementSync } from "node:sqlite";

const CACHE_KIB = 8 * 1024;

export class SeenIds implements Disposable {
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #find: StatementSync;

  constructor() {
    this.#db = new DatabaseSync(":memory:");
    // A temporary table uses an unnamed file, which is removed with the connection or the process.
    this.#db.exec(`
      PRAGMA temp_store = FILE;
      PRAGMA temp.cache_size = -${CACHE_KIB};
      CREATE TEMP TABLE ids (id TEXT PRIMARY KEY, line INTEGER NOT NULL) WITHOUT ROWID;
      BEGIN
    `);
    this.#insert = this.#db.prepare("INSERT OR IGNORE INTO ids VALUES (?, ?)");
    this.#find = this.#db.prepare("SELECT line FROM ids WHERE id = ?");
  }

  /** Adds an ID. Returns the line of an earlier occurrence, or `null`. */
  add(id: string, line: number): number | null {
    if (Number(this.#insert.run(id, line).changes) > 0) return null;
    return Number(this.#find.get(id)?.["line"]);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}
