/** An SQLite connection: opening, prepared statements, readable errors, and checkpoints of the write-ahead log. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { EngineError, UnusableDatabaseError } from "./errors.ts";
import { engineLimits } from "./limits.ts";

/** `PRAGMA application_id` of database files: "SYNL". */
export const APPLICATION_ID = 0x53594e4c;
/** `PRAGMA user_version` of database files. Increased when older versions cannot use newer files. */
export const FORMAT_VERSION = 2;

/** Values of a row in the order of the columns. */
export type Row = readonly unknown[];

/** A prepared statement that returns rows as arrays, not lazily: iteration ends silently at a damaged page. */
export interface Statement {
  get(...parameters: SQLInputValue[]): Row | undefined;
  all(...parameters: SQLInputValue[]): Row[];
  run(...parameters: SQLInputValue[]): { readonly changes: number; readonly lastInsertRowid: number };
}

/** For example, an index already has the key. */
const SQLITE_CONSTRAINT = 19;
/** Result codes for a damaged or foreign file. */
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

export class Connection implements Disposable {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Statement>();

  private constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Opens or creates a file for writing. `pagesMax` limits its size, in pages of 4 KiB. */
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

  /** Opens a file exclusively without crash safety, for discardable copies. Durable after close and a sync. */
  static openScratch(path: string): Connection {
    const { scratchCacheBytes: cacheBytes } = engineLimits;
    const connection = Connection.#open(path, { readOnly: false, cacheBytes });
    // Writes pages to the file directly and keeps the rollback journal in memory.
    connection.execute(
      `PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF`,
    );
    return connection;
  }

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

  /** Syncs at checkpoints only: the commits are durable elsewhere. A power failure may lose the newest ones here. */
  deferSync(): void {
    this.#db.exec("PRAGMA synchronous = NORMAL");
  }

  /** The file's format, at most `FORMAT_VERSION`. */
  get format(): number {
    return this.statement("PRAGMA user_version").get()?.[0] as number;
  }

  /** SQLite itself ends a transaction after some errors. */
  get inTransaction(): boolean {
    return this.#db.isTransaction;
  }

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

  execute(sql: string): void {
    this.#db.exec(sql);
  }

  [Symbol.dispose](): void {
    this.#statements.clear();
    this.#db.close();
  }
}

/** Prepares a statement that returns arrays. The binding's types do not have this option yet. */
export function prepareArrays(db: DatabaseSync, sql: string): Statement {
  const statement = db.prepare(sql) as unknown as Statement & { setReturnArrays(on: boolean): void };
  statement.setReturnArrays(true);
  return statement;
}

/** Throws unless the file has a known format, or is empty and opened for writing. */
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
      reason:
        `a newer version of the server wrote it (format ${version}; this version supports ${FORMAT_VERSION})`,
      advice: "start the newer version, or restore an older backup",
    });
  }
}

function first(db: DatabaseSync, sql: string): unknown[] {
  return Object.values(db.prepare(sql).get() ?? {});
}

/** Describes a damaged or foreign file and what to do. Returns other errors unchanged. */
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

/** Returns whether an error shows that a row does not continue the database's history, or that either is damaged. */
export function isHistoryMismatch(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof EngineError) return error.code === "bad_entry" || error.code === "unusable_database";
  return [SQLITE_CONSTRAINT, SQLITE_CORRUPT, SQLITE_NOTADB].includes(sqliteCode(error));
}

/** Returns SQLite's primary result code of an error, or 0. */
function sqliteCode(error: Error): number {
  const code: unknown = (error as { errcode?: unknown }).errcode;
  return typeof code === "number" ? code & 0xff : 0;
}

const { earlyCheckpointPages, groupsBetweenChecks: groupsBetweenLooks, smallGroupCallsMax } = engineLimits;

/**
 * Schedules checkpoints, which copy the write-ahead log into the database file.
 *
 * Under load a long log is best: a page that changes repeatedly is copied once. SQLite itself starts a checkpoint in a
 * commit that reaches `checkpointPages`. Under light load a short log is best: a commit that extends the log file takes
 * about twice as long as one that overwrites it. So after a series of small groups a checkpoint runs much earlier, when
 * no answer waits for it. A small group among large ones does not count: a checkpoint would delay the next batches.
 */
export class Checkpoints {
  readonly #connection: Connection;
  /** Consecutive small groups since the last check of the log's length. */
  #groups = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  afterGroup(calls: number): void {
    this.#groups = calls > smallGroupCallsMax ? 0 : this.#groups + 1;
    if (this.#groups < groupsBetweenLooks) return;
    this.#groups = 0;
    if (this.#logPages() < earlyCheckpointPages) return;
    try {
      // Snapshots of readers may keep a part from being copied. A later checkpoint copies it.
      this.#connection.statement("PRAGMA wal_checkpoint(PASSIVE)").get();
    } catch {
      // On a full disk the log keeps all commits, and the next commit without space fails with the reason.
    }
  }

  /** Runs a checkpoint. Returns whether it copied anything. Throws on a full disk. */
  checkpoint(): boolean {
    const before = this.#copiedPages("NOOP");
    return this.#copiedPages("PASSIVE") > before;
  }

  #copiedPages(mode: "NOOP" | "PASSIVE"): number {
    const copied = this.#connection.statement(`PRAGMA wal_checkpoint(${mode})`).get()?.[2];
    return typeof copied === "number" ? copied : 0;
  }

  #logPages(): number {
    const [, pages, copied] = this.#connection.statement("PRAGMA wal_checkpoint(NOOP)").get() ?? [];
    return typeof pages === "number" && typeof copied === "number" && copied < pages ? pages : 0;
  }
}
