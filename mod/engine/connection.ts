/** One SQLite connection: how it is opened, its prepared statements, and errors of the file in plain words. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { engineLimits } from "./limits.ts";
import { EngineError, UnusableDatabaseError } from "./errors.ts";

/** `PRAGMA application_id` of our files: "SYNL". */
export const APPLICATION_ID = 0x53594e4c;
/** `PRAGMA user_version` of our files: raised when an older program could not read what a newer one wrote. */
export const FORMAT_VERSION = 2;

/** A row as the binding gives it: values in the order of the columns. */
export type Row = readonly unknown[];

/**
 * A prepared statement. Rows are arrays. The binding's `iterate` is left out: at a damaged page it ends as if all had been
 * read.
 */
export interface Statement {
  get(...parameters: SQLInputValue[]): Row | undefined;
  all(...parameters: SQLInputValue[]): Row[];
  run(...parameters: SQLInputValue[]): { readonly changes: number; readonly lastInsertRowid: number };
}

const SQLITE_FULL = 13;
/** What an index must hold once is there already. */
const SQLITE_CONSTRAINT = 19;
/** SQLite's primary result codes that mean the file itself is bad. */
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** A connection to a database file. */
export class Connection implements Disposable {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Statement>();

  private constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Opens the file for writing, making it if there is none. It may grow to `pagesMax` pages of 4 KiB. */
  static openWriter(
    path: string,
    { pagesMax, cacheBytes = engineLimits.writerCacheBytes }: {
      readonly pagesMax: number | undefined;
      readonly cacheBytes?: number | undefined;
    },
  ): Connection {
    const connection = Connection.#open(path, { readOnly: false, cacheBytes });
    if (pagesMax !== undefined) connection.execute(`PRAGMA max_page_count = ${Math.trunc(pagesMax)}`);
    return connection;
  }

  /**
   * Opens a file that nobody else has open, and that is thrown away when this ends before its time: a crash may leave it
   * damaged. Its writes are on the disk when it is closed and the file was synced.
   */
  static openScratch(path: string): Connection {
    const { scratchCacheBytes: cacheBytes } = engineLimits;
    const connection = Connection.#open(path, { readOnly: false, cacheBytes });
    // Pages go into the file itself, once, and what undoes a transaction stays in memory.
    connection.execute(
      `PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF`,
    );
    return connection;
  }

  /** Opens an existing file for reading. */
  static openReader(path: string, cacheBytes: number = engineLimits.readerCacheBytes): Connection {
    return Connection.#open(path, { readOnly: true, cacheBytes });
  }

  static #open(
    path: string,
    options: { readonly readOnly: boolean; readonly cacheBytes: number },
  ): Connection {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(path, { readOnly: options.readOnly, timeout: engineLimits.lockWaitMs });
      const cacheKiB = Math.ceil(options.cacheBytes / 1024);
      db.exec(`PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -${cacheKiB}`);
      checkFormat(db, { path, readOnly: options.readOnly });
      if (!options.readOnly) {
        db.exec(
          `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
           PRAGMA wal_autocheckpoint = ${engineLimits.checkpointPages};
           PRAGMA journal_size_limit = ${engineLimits.walBytesKept}`,
        );
      }
      return new Connection(db);
    } catch (cause) {
      db?.close();
      throw describeSqliteError(cause, path);
    }
  }

  /**
   * For a file whose commits are kept elsewhere: from now on they are not synced to the disk one by one, but when the
   * write-ahead log is copied. After a power failure the file is as one of its commits left it, and newer ones are gone.
   */
  deferSync(): void {
    this.#db.exec("PRAGMA synchronous = NORMAL");
  }

  /** The format of the file, at most `FORMAT_VERSION`. */
  get format(): number {
    return this.statement("PRAGMA user_version").get()?.[0] as number;
  }

  /** Whether a transaction is open. SQLite itself ends one after some errors. */
  get inTransaction(): boolean {
    return this.#db.isTransaction;
  }

  /** The prepared statement of a text; the oldest is let go when there are many. */
  statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= engineLimits.statementsMax) {
      for (const oldest of this.#statements.keys()) {
        this.#statements.delete(oldest);
        break;
      }
    }
    const statement = prepareArrays(this.#db, sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** Runs statements that are not kept. */
  execute(sql: string): void {
    this.#db.exec(sql);
  }

  [Symbol.dispose](): void {
    this.#statements.clear();
    this.#db.close();
  }
}

/** Prepares a statement whose rows are arrays, which the types of the binding do not know yet. */
export function prepareArrays(db: DatabaseSync, sql: string): Statement {
  const statement = db.prepare(sql) as unknown as Statement & { setReturnArrays(on: boolean): void };
  statement.setReturnArrays(true);
  return statement;
}

/** Throws unless the file is ours and of a version we know, or empty and about to be written. */
function checkFormat(
  db: DatabaseSync,
  { path, readOnly }: { readonly path: string; readonly readOnly: boolean },
): void {
  const [version] = first(db, "PRAGMA user_version");
  const [application] = first(db, "PRAGMA application_id");
  const [objects] = first(db, "SELECT count(*) FROM sqlite_schema");
  if (application !== APPLICATION_ID && (objects !== 0 || application !== 0)) {
    throw new UnusableDatabaseError(path, { reason: "it is an SQLite database of another program" });
  }
  if (readOnly && version === 0) {
    throw new UnusableDatabaseError(path, { reason: "it is empty, no writer has opened it yet" });
  }
  if (Number(version) > FORMAT_VERSION) {
    throw new UnusableDatabaseError(path, {
      reason: `a newer version of the server wrote it (format ${version}, this one knows ${FORMAT_VERSION})`,
      advice: "start the newer version, or restore an older backup",
    });
  }
}

function first(db: DatabaseSync, sql: string): unknown[] {
  return Object.values(db.prepare(sql).get() ?? {});
}

/** Says what an operator can do about a damaged or foreign file; other errors stay as they are. */
export function describeSqliteError(cause: unknown, path: string): unknown {
  if (!(cause instanceof Error) || cause instanceof EngineError) return cause;
  const code = sqliteCode(cause);
  const foreign = code === SQLITE_NOTADB || cause.message.includes("file is not a database");
  if (foreign || code === SQLITE_CORRUPT || cause.message.includes("malformed")) {
    return new UnusableDatabaseError(path, {
      reason: foreign ? "it is not a database" : "the database is damaged",
      advice: "restore a backup, or move the file away to start with an empty database",
      cause,
    });
  }
  return cause;
}

/** Whether an error, or what caused it, is that the disk or the file has no room for more. */
export function isDiskFullError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return sqliteCode(error) === SQLITE_FULL || /\bdisk is full\b/.test(error.message) ||
    isDiskFullError(error.cause);
}

/** Whether an error says that a row and the database it was to be applied to are not of one history, or one is damaged. */
export function isHistoryMismatch(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof EngineError) return error.code === "bad_entry" || error.code === "unusable_database";
  return [SQLITE_CONSTRAINT, SQLITE_CORRUPT, SQLITE_NOTADB].includes(sqliteCode(error));
}

/** SQLite's primary result code of an error, or 0. */
function sqliteCode(error: Error): number {
  const code: unknown = (error as { errcode?: unknown }).errcode;
  return typeof code === "number" ? code & 0xff : 0;
}
