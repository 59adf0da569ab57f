/** The SQLite file of the execution log: schema, opening, and the errors that make a file unusable. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { logLimits } from "../../limits.ts";

/** `PRAGMA application_id` of the log: "SYNX". */
const APPLICATION_ID = 0x53594e58;
/** `PRAGMA user_version`. Raised when older programs could not read the file. */
const FORMAT_VERSION = 3;
export const OLD_FORMAT_VERSION = 2;

export const LOG_SCHEMA_SQL = `
  CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, at INTEGER NOT NULL, path TEXT NOT NULL, kind INTEGER NOT NULL, caller TEXT,
    outcome INTEGER NOT NULL, level INTEGER NOT NULL, request INTEGER NOT NULL, ts INTEGER,
    duration INTEGER NOT NULL, queued INTEGER NOT NULL, documents_read INTEGER NOT NULL,
    index_rows_read INTEGER NOT NULL, documents_written INTEGER NOT NULL, index_rows_written INTEGER NOT NULL,
    error TEXT, lines TEXT);
  CREATE INDEX IF NOT EXISTS runs_path ON runs (path);
  CREATE INDEX IF NOT EXISTS runs_request ON runs (request);
  CREATE INDEX IF NOT EXISTS runs_outcome ON runs (outcome) WHERE outcome > 0;
  CREATE INDEX IF NOT EXISTS runs_level ON runs (level) WHERE level > 2;
  CREATE INDEX IF NOT EXISTS runs_text ON runs (path) WHERE error IS NOT NULL OR lines IS NOT NULL;
  CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram');
  CREATE TABLE IF NOT EXISTS minutes (
    minute INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS counts (
    minute INTEGER NOT NULL, path TEXT NOT NULL, kind INTEGER NOT NULL, outcome INTEGER NOT NULL,
    level INTEGER NOT NULL, runs INTEGER NOT NULL,
    PRIMARY KEY (minute, path, kind, outcome, level)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS versions (
    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, hash TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS figures (
    span TEXT NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (span, at)) WITHOUT ROWID`;

const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
/** Errors of SQLite by their message, because errors of `exec` and of opening have no code. */
const IN_USE = /is locked/;
const DISK_ERROR = /is full|disk I\/O error/;
const BAD_FILE = /disk image is malformed|is not a database/;

export type Row = readonly unknown[];

/** A prepared statement whose rows are arrays. */
interface Statement {
  get(...parameters: SQLInputValue[]): Row | undefined;
  all(...parameters: SQLInputValue[]): Row[];
  run(...parameters: SQLInputValue[]): unknown;
}

/** The file is foreign, or of another format, and has to be replaced. For readers, any file that cannot be read. */
export class UnusableLogError extends Error {
  override readonly name: string = "UnusableLogError";
}

/** The file is a log that another version of the server wrote, and may still be writing. */
export class OtherLogFormatError extends UnusableLogError {}

/** Returns the format of a log written by another version; `null` for one of this version and for other files. */
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

/** Checkpoints the log into its file for a rename. Returns `false` if another process has it open. */
export function checkpointLog(path: string): boolean {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { timeout: 0 });
    // Fails while another process has the file open.
    db.exec("PRAGMA journal_mode = DELETE");
    return true;
  } catch (error) {
    return !IN_USE.test(messageOf(error));
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

  /** Opens or creates the file. Throws an `UnusableLogError`, or an error of SQLite or the file system. */
  static open(path: string): LogDatabase {
    let db: DatabaseSync | undefined;
    try {
      createPrivateFile(path);
      db = new DatabaseSync(path, { timeout: 5_000 });
      // A power failure may cost the newest runs, or the whole log, but no commit of the app waits for it.
      db.exec(`PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;
               PRAGMA cache_size = -${logLimits.cacheBytes / 1024}`);
      const log = new LogDatabase(db);
      log.#prepareFile(path);
      return log;
    } catch (error) {
      db?.close();
      throw error;
    }
  }

  /** Opens an existing file for reading; another process may be writing it. Throws an `UnusableLogError`. */
  static openReader(path: string): LogDatabase {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(path, { timeout: 5_000, readOnly: true });
      const log = new LogDatabase(db);
      log.#checkFormat(path);
      // An earlier release of this format had no versions.
      if (log.value("SELECT count(*) FROM sqlite_schema WHERE name = 'versions'") === 0) {
        db.exec("CREATE TEMP TABLE versions (first INTEGER PRIMARY KEY, last INTEGER, hash TEXT)");
      }
      return log;
    } catch (error) {
      db?.close();
      if (error instanceof UnusableLogError) throw error;
      throw new UnusableLogError(`Cannot read "${path}": ${messageOf(error)}`, { cause: error });
    }
  }

  /** Returns whether the file has tables. Throws if they are not ours. */
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
    if (!this.#checkFormat(path)) this.#db.exec("PRAGMA auto_vacuum = INCREMENTAL");
    this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 4000;
                   PRAGMA journal_size_limit = 67108864`);
    this.transaction(() => {
      this.#db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT_VERSION};
        ${LOG_SCHEMA_SQL}`);
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

  /** Returns the first column of the first row. */
  value(sql: string, ...parameters: SQLInputValue[]): unknown {
    return this.#statement(sql).get(...parameters)?.[0];
  }

  /** Runs `work` in a transaction, which is rolled back if it throws. */
  transaction<Result>(work: () => Result): Result {
    return this.#within("BEGIN IMMEDIATE", work);
  }

  /** Runs several reads on one snapshot. */
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

/** Creates the file for its owner only, unless it exists. SQLite creates the files beside it with the same mode. */
function createPrivateFile(path: string): void {
  try {
    Deno.openSync(path, { createNew: true, write: true, mode: 0o600 }).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}

/** Whether a file is damaged or foreign and must be replaced. Other errors, such as too many open files, are no evidence of that. */
export function isBadFile(error: unknown): boolean {
  if (error instanceof UnusableLogError || error instanceof SyntaxError) return true;
  const { errcode = 0 } = error as { readonly errcode?: number };
  return [SQLITE_CORRUPT, SQLITE_NOTADB].includes(errcode & 0xff) || BAD_FILE.test(messageOf(error));
}

/** Whether the disk is full or does not work, which may be temporary. */
export function isDiskError(error: unknown): boolean {
  return DISK_ERROR.test(messageOf(error));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
