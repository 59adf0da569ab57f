/**
 * Copies of a database that others write to meanwhile. A copy holds one state: a read transaction is open before the first
 * page is read, as without one SQLite begins anew whenever another connection writes, and under a steady writer never ends.
 * Nobody waits for it; the write-ahead log grows until the copy is there.
 */
import { backup, DatabaseSync } from "node:sqlite";
import { engineLimits } from "../limits.ts";
import { Connection, prepareArrays, type Statement } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { hasJournal, type JournalHead, readHead } from "../journal/journal.ts";

/** All pages at once: the binding holds up its thread in any case, and steps only add to it. */
const ALL_PAGES = -1;

/** One state of a database, held until it is disposed of. */
export interface DatabaseSnapshot extends Disposable {
  /** The newest commit in it. */
  readonly ts: number;
  /** Where the history of its journal stands; `null` without one. */
  readonly history: JournalHead | null;
  /** Writes it to a file that is not there yet. Holds up the thread that calls it. */
  copyTo(path: string): Promise<void>;
}

/**
 * Holds the present state of a database, whether others have it open or not. Throws an `UnusableDatabaseError` when the
 * file is damaged, foreign, newer, or empty because no writer has opened it yet.
 */
export function openDatabaseSnapshot(path: string): DatabaseSnapshot {
  // Says in plain words what is wrong with the file.
  Connection.openReader(path)[Symbol.dispose]();
  const held = new HeldFile(path);
  const ts = held.oneValue("SELECT ts FROM syncline_state");
  if (typeof ts !== "number") {
    held[Symbol.dispose]();
    throw new EngineError(
      "unusable_database",
      `Cannot read "${path}": it does not say what its newest commit is`,
    );
  }
  return {
    ts,
    history: hasJournal(held) ? readHead(held) : null,
    copyTo: (target) => held.copyTo(target),
    [Symbol.dispose]: () => held[Symbol.dispose](),
  };
}

/** Copies any SQLite database, as that of a log, to a file that is not there yet. */
export async function copySqliteFile(path: string, target: string): Promise<void> {
  using held = new HeldFile(path);
  await held.copyTo(target);
}

class HeldFile implements Disposable {
  readonly #db: DatabaseSync;

  constructor(path: string) {
    this.#db = new DatabaseSync(path, { readOnly: true, timeout: engineLimits.lockWaitMs });
    try {
      // The state is held from the first read on.
      this.#db.exec("BEGIN");
      this.oneValue("SELECT count(*) FROM sqlite_schema");
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  /** A prepared statement whose rows are arrays. */
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
