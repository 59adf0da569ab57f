/**
 * Copies databases that are in use. A copy has one state: a read transaction is open first, because otherwise SQLite
 * restarts the copy whenever another connection writes. It blocks no writer, but the write-ahead log grows during the
 * copy.
 */
import { backup, DatabaseSync } from "node:sqlite";
import { engineLimits } from "../limits.ts";
import { Connection, prepareArrays, type Statement } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { hasJournal, type JournalHead, readHead } from "../journal/history_head.ts";

/** All pages at once: the binding blocks its thread in any case, and steps only take longer. */
const ALL_PAGES = -1;

export interface DatabaseSnapshot extends Disposable {
  readonly ts: number;
  /** Position of its journal's history; `null` without one. */
  readonly history: JournalHead | null;
  /** Writes the snapshot to a new file. Blocks the calling thread. */
  copyTo(path: string): Promise<void>;
}

/** Opens a snapshot, also of a database in use. Throws an `UnusableDatabaseError`. */
export function openDatabaseSnapshot(path: string): DatabaseSnapshot {
  // Throws a readable error if the file is unusable.
  Connection.openReader(path)[Symbol.dispose]();
  const file = new SnapshotFile(path);
  const ts = file.oneValue("SELECT ts FROM syncline_state");
  if (typeof ts !== "number") {
    file[Symbol.dispose]();
    throw new EngineError(
      "unusable_database",
      `Cannot read "${path}": the row with its newest commit is missing`,
    );
  }
  return {
    ts,
    history: hasJournal(file) ? readHead(file) : null,
    copyTo: (target) => file.copyTo(target),
    [Symbol.dispose]: () => file[Symbol.dispose](),
  };
}

export async function copySqliteFile(path: string, target: string): Promise<void> {
  using file = new SnapshotFile(path);
  await file.copyTo(target);
}

class SnapshotFile implements Disposable {
  readonly #db: DatabaseSync;

  constructor(path: string) {
    this.#db = new DatabaseSync(path, { readOnly: true, timeout: engineLimits.lockWaitMs });
    try {
      // The snapshot starts with the first read.
      this.#db.exec("BEGIN");
      this.oneValue("SELECT count(*) FROM sqlite_schema");
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  statement(sql: string): Statement {
    return prepareArrays(this.#db, sql);
  }

  oneValue(sql: string): unknown {
    return Object.values(this.#db.prepare(sql).get() ?? {})[0];
  }

  async copyTo(path: string): Promise<void> {
    await backup(this.#db, path, { rate: ALL_PAGES });
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}
