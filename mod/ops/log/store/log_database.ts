/** The log's SQLite file: how it is opened, and what makes it unusable. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { logLimits } from "../../limits.ts";

/** `PRAGMA application_id` of the log: "SYNX". */
const APPLICATION_ID = 0x53594e58;
/** `PRAGMA user_version`: raised when an older program could not read what a newer one wrote. */
const FORMAT_VERSION = 2;

/** SQLite's primary result codes after which the file is of no more use to us. */
const BAD_FILE: ReadonlySet<number> = new Set([8, 11, 14, 26]);
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

export class LogDatabase implements Disposable {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Statement>();

  private constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Opens the file, making it if there is none. Throws an `UnusableLogError` for one that cannot be used. */
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
      if (error instanceof UnusableLogError) throw error;
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
      throw new UnusableLogError(
        id === APPLICATION_ID
          ? `"${path}" was written by another version of Syncline (format ${version})`
          : `"${path}" is no log of Syncline`,
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
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.exec("COMMIT");
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
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return null;
  return error.errcode & 0xff;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
