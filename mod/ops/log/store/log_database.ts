/** The log's SQLite file: how it is opened, and what makes it unusable. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { logLimits } from "../../limits.ts";

/** `PRAGMA application_id` of the log: "SYNX". */
const APPLICATION_ID = 0x53594e58;
/** `PRAGMA user_version`: raised when an older program could not read what a newer one wrote. */
const FORMAT_VERSION = 2;

/** SQLite's primary result codes that tell nothing about the file: another one uses it, or the disk is full. */
const PASSING: ReadonlySet<number> = new Set([5, 6, 13]);
const SQLITE_BUSY = 5;
/** SQLite's primary result codes after which the file is of no more use to us. */
const BAD_FILE: ReadonlySet<number> = new Set([8, 11, 14, 26]);
/** What SQLite says for its codes: errors of several statements at once bring no code with them. */
const CODES: ReadonlyMap<string, number> = new Map([
  ["database is locked", 5],
  ["database table is locked", 6],
  ["attempt to write a readonly database", 8],
  ["disk I/O error", 10],
  ["database disk image is malformed", 11],
  ["database or disk is full", 13],
  ["unable to open database file", 14],
  ["file is not a database", 26],
]);
const SQLITE_FULL = 13;
const SQLITE_IOERR = 10;

export type Row = readonly unknown[];

/** A prepared statement whose rows are arrays. */
interface Statement {
  get(...parameters: SQLInputValue[]): Row | undefined;
  all(...parameters: SQLInputValue[]): Row[];
  run(...parameters: SQLInputValue[]): unknown;
}

/** The file is damaged, foreign, or cannot be used: another one has to take its place. */
export class UnusableLogError extends Error {
  override readonly name = "UnusableLogError";
}

/** The file is a log that another version of the server wrote, and may still be writing. */
export class OtherLogFormatError extends UnusableLogError {}

/** SQL that makes the tables that every log has. */
export const CREATE_LOG_SQL = `
  CREATE TABLE IF NOT EXISTS functions (id INTEGER PRIMARY KEY, path TEXT NOT NULL, kind INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS segments (no INTEGER PRIMARY KEY, facts TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS minutes (
    minute INTEGER NOT NULL, fn INTEGER NOT NULL, outcome INTEGER NOT NULL, level INTEGER NOT NULL,
    runs INTEGER NOT NULL, PRIMARY KEY (fn, minute, outcome, level)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS figures (
    span TEXT NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (span, at)) WITHOUT ROWID`;

/** The format of a log that another version of the server wrote; `null` for one of this version, and for what is no log. */
export function otherLogFormat(path: string): number | null {
  try {
    using db = new DatabaseSync(path, { readOnly: true });
    const pragma = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
    const format = Number(pragma("user_version"));
    return pragma("application_id") === APPLICATION_ID && format !== FORMAT_VERSION ? format : null;
  } catch {
    return null;
  }
}

/**
 * Brings everything that was written into the file itself, so that it can be moved; `false` when another process has it open.
 * What cannot be brought in for another reason stays beside the file.
 */
export function gatherLog(path: string): boolean {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { timeout: 0 });
    // Nobody leaves this mode while another one is there.
    db.exec("PRAGMA journal_mode = DELETE");
    return true;
  } catch (error) {
    return codeOf(error) !== SQLITE_BUSY;
  } finally {
    db?.close();
  }
}

export class LogDatabase implements Disposable {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Statement>();

  private constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /**
   * Opens the file, making it if there is none. Throws an `UnusableLogError` for one that cannot be used, and what SQLite
   * throws when that may pass.
   */
  static open(path: string, cacheBytes: number = logLimits.cacheBytes): LogDatabase {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(path, { timeout: 5_000 });
      // A power failure may cost the newest runs, or the whole log, but a commit of the app never waits for it.
      db.exec(`PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;
               PRAGMA cache_size = -${Math.ceil(cacheBytes / 1024)}`);
      const log = new LogDatabase(db);
      log.#prepareFile(path);
      return log;
    } catch (error) {
      db?.close();
      if (error instanceof UnusableLogError || PASSING.has(codeOf(error) ?? 0)) throw error;
      throw new UnusableLogError(messageOf(error), { cause: error });
    }
  }

  /** Opens an existing file for reading, beside whoever writes it. Throws an `UnusableLogError` for one that is no log. */
  static openReader(path: string): LogDatabase {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(path, { timeout: 5_000, readOnly: true });
      const log = new LogDatabase(db);
      log.#checkFormat(path);
      return log;
    } catch (error) {
      db?.close();
      if (error instanceof UnusableLogError) throw error;
      throw new UnusableLogError(`Cannot read "${path}": ${messageOf(error)}`, { cause: error });
    }
  }

  /** Whether it holds anything. Throws when that is not ours. */
  #checkFormat(path: string): boolean {
    const id = this.value("PRAGMA application_id");
    const version = this.value("PRAGMA user_version");
    const objects = this.value("SELECT count(*) FROM sqlite_schema");
    if (objects !== 0 && (id !== APPLICATION_ID || version !== FORMAT_VERSION)) {
      if (id !== APPLICATION_ID) throw new UnusableLogError(`"${path}" is no log of Syncline`);
      throw new OtherLogFormatError(
        `"${path}" was written by another version of Syncline (format ${version})`,
      );
    }
    return objects !== 0;
  }

  #prepareFile(path: string): void {
    const isNew = !this.#checkFormat(path);
    if (isNew) this.#db.exec("PRAGMA auto_vacuum = INCREMENTAL");
    this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 4000;
                   PRAGMA journal_size_limit = 67108864`);
    this.transaction(() => {
      this.#db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT_VERSION};
        ${CREATE_LOG_SQL}`);
    });
  }

  execute(sql: string): void {
    this.#db.exec(sql);
  }

  run(sql: string, ...parameters: SQLInputValue[]): void {
    this.#statement(sql).run(...parameters);
  }

  all(sql: string, ...parameters: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...parameters);
  }

  /** The first column of the first row. */
  value(sql: string, ...parameters: SQLInputValue[]): unknown {
    return this.#statement(sql).get(...parameters)?.[0];
  }

  /** Runs `work` in a transaction, which is undone when it throws. */
  transaction<Result>(work: () => Result): Result {
    return this.#within("BEGIN IMMEDIATE", work);
  }

  /** Runs `work`, which only reads: it sees what there is at one moment, whatever others write meanwhile. */
  reading<Result>(work: () => Result): Result {
    return this.#db.isTransaction ? work() : this.#within("BEGIN", work);
  }

  #within<Result>(begin: string, work: () => Result): Result {
    this.run(begin);
    try {
      const result = work();
      this.run("COMMIT");
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  /** Lets go of prepared statements: those of a table that is dropped are of no more use. */
  forgetStatements(): void {
    this.#statements.clear();
  }

  [Symbol.dispose](): void {
    this.#statements.clear();
    this.#db.close();
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= logLimits.statementsMax) this.#statements.clear();
    const statement = this.#db.prepare(sql) as unknown as Statement & { setReturnArrays(on: boolean): void };
    statement.setReturnArrays(true);
    this.#statements.set(sql, statement);
    return statement;
  }
}

/** Whether an error means that the file has to be replaced. */
export function isBadFile(error: unknown): boolean {
  if (error instanceof UnusableLogError) return true;
  const code = codeOf(error);
  return code !== null && BAD_FILE.has(code);
}

/** Whether an error means that the disk has no room, or does not work, which may pass. */
export function isDiskTrouble(error: unknown): boolean {
  const code = codeOf(error);
  return code === SQLITE_FULL || code === SQLITE_IOERR;
}

/** SQLite's primary result code. */
function codeOf(error: unknown): number | null {
  if (!(error instanceof Error)) return null;
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode & 0xff;
  return CODES.get(error.message) ?? null;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
