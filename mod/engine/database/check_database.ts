/** The complete check of a foreign database: file, catalog, every document in every index. Slow, in bounded memory. */
import { DatabaseSync } from "node:sqlite";
import { type CatalogTable, readCatalog } from "../catalog.ts";
import { Connection, prepareArrays, type Statement } from "../connection.ts";
import { isCreationTime } from "../documents/system_fields.ts";
import { UnusableDatabaseError } from "../errors.ts";
import { type CatalogIndex, createIndexSql } from "../indexes/index_set.ts";
import { CREATE_FOLLOWED_SQL, isMarked } from "../journal/history_ownership.ts";
import { CREATE_JOURNAL_SQL, hasJournal } from "../journal/history_head.ts";
import { CREATE_SERVED_SQL, namesVersion } from "../journal/catalog_state.ts";
import { createDocumentsSql, documentsTable } from "../table.ts";
import { checkTable, damagedError, searchEntriesTable } from "./check_indexes.ts";
import { CREATE_DATABASE_SQL } from "./database_format.ts";

interface StatementSource {
  statement(sql: string): Statement;
}

/** Tables, indexes, views and triggers by type and name, with their SQL without redundant spaces. */
type Objects = ReadonlyMap<string, { readonly type: string; readonly name: string; readonly text: string }>;

/** Reads only the schema. */
function objectsOf(database: StatementSource): Objects {
  const rows = database.statement("SELECT type, name, tbl_name, sql FROM sqlite_schema").all();
  return new Map(rows.map(([type, name, table, sql]) => [
    `${type} ${name}`,
    { type: String(type), name: String(name), text: `${table} ${plain(String(sql ?? ""))}` },
  ]));
}

function plain(sql: string): string {
  return sql.replace(/\s+/g, " ").replace(/ ?([(),;]) ?/g, "$1").trim();
}

function expectedObjects(sql: string): Objects {
  using memory = new DatabaseSync(":memory:");
  memory.exec(sql);
  return objectsOf({ statement: (text) => prepareArrays(memory, text) });
}

/**
 * Describes how a database's schema differs from what `sql` creates; `null` if it does not. `others` allows further
 * tables, `lacking` allows missing ones. Call it before anything else is read: views, generated columns, expressions in
 * indexes and virtual tables can run code of the file's author.
 */
function schemaFault(
  database: StatementSource,
  { sql, others = false, lacking = false }: {
    readonly sql: string;
    readonly others?: boolean;
    readonly lacking?: boolean;
  },
): string | null {
  const expected = expectedObjects(sql);
  const found = objectsOf(database);
  for (const [key, { type, name, text }] of found) {
    const wanted = expected.get(key);
    if (wanted !== undefined) {
      if (wanted.text !== text) return `its ${type} ${name} differs from what the server creates`;
    } else if (!others || (type !== "table" && !(type === "index" && name.startsWith("sqlite_autoindex_")))) {
      return `it has the ${type} "${name}", which the server never creates`;
    }
  }
  for (const [key, { type, name }] of expected) {
    if (!lacking && !found.has(key)) return `its ${type} ${name} is missing`;
  }
  return null;
}

export interface CheckedDatabase {
  readonly ts: number;
  readonly tables: number;
  readonly documents: number;
}

/** Checks an unused database file; may leave `-wal` and `-shm`. Throws an {@linkcode UnusableDatabaseError}. */
export function checkDatabase(path: string): CheckedDatabase {
  try {
    using connection = Connection.openReader(path);
    return check(connection);
  } catch (error) {
    throw asUnusableDatabase(path, error);
  }
}

/** Checks another SQLite file: integrity, and that it has only what `schemaSql` creates. Throws as above. */
export function checkSqliteFile(path: string, schemaSql: (tables: readonly string[]) => string): void {
  try {
    using db = new DatabaseSync(path, { readOnly: true });
    const database = { statement: (sql: string) => prepareArrays(db, sql) };
    const schema = schemaFault(database, { sql: schemaSql(tableNames(database)), lacking: true });
    if (schema !== null) throw damagedError(schema);
    const fault = Object.values(db.prepare("PRAGMA integrity_check(1)").get() ?? {})[0];
    if (fault !== "ok") throw damagedError(String(fault));
  } catch (error) {
    throw asUnusableDatabase(path, error);
  }
}

/** Checks the schema of a database file before it is opened for writing. Throws as above. */
export function checkDatabaseSchema(path: string): void {
  try {
    using connection = Connection.openReader(path);
    checkedCatalog(connection);
  } catch (error) {
    throw asUnusableDatabase(path, error);
  }
}

function asUnusableDatabase(path: string, error: unknown): UnusableDatabaseError {
  if (error instanceof UnusableDatabaseError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new UnusableDatabaseError(path, { reason, cause: error });
}

function check(connection: Connection): CheckedDatabase {
  const { ts, catalog } = checkFile(connection);
  return { ts, tables: catalog.length, documents: checkIndexes(connection, catalog) };
}

function checkFile(
  connection: Connection,
): { readonly ts: number; readonly catalog: readonly CatalogTable[] } {
  const catalog = checkedCatalog(connection);
  // Includes search indexes.
  const fault = connection.statement("PRAGMA integrity_check(1)").get()?.[0];
  if (fault !== "ok") throw damagedError(String(fault));
  return { ts: checkState(connection), catalog };
}

type OnProgress = (done: number, of: number) => void;

const PROGRESS_INTERVAL_MS = 200;

/** Checks every document in every index. Returns the number of documents. */
function checkIndexes(
  connection: Connection,
  catalog: readonly CatalogTable[],
  onChecked?: OnProgress,
): number {
  const onDocument = onChecked && throttledProgress(onChecked, countDocuments(connection, catalog));
  let documents = 0;
  for (const table of catalog) documents += checkTable(connection, table, onDocument);
  return documents;
}

function countDocuments(connection: Connection, catalog: readonly CatalogTable[]): number {
  return catalog.reduce(
    (sum, { number }) =>
      sum + Number(connection.statement(`SELECT count(*) FROM ${documentsTable(number)}`).get()?.[0]),
    0,
  );
}

function throttledProgress(onChecked: OnProgress, of: number): () => void {
  let done = 0;
  let reportedAt = performance.now();
  onChecked(0, of);
  return () => {
    done++;
    const now = performance.now();
    if (now - reportedAt < PROGRESS_INTERVAL_MS) return;
    reportedAt = now;
    onChecked(done, of);
  };
}

/** Returns the catalog after checking it, and that the SQLite schema is exactly what the server creates. */
function checkedCatalog(connection: Connection): readonly CatalogTable[] {
  const own = schemaFault(connection, { sql: CREATE_DATABASE_SQL, others: true });
  if (own !== null) throw damagedError(own);
  const present = new Set(tableNames(connection));
  const catalog = [...readCatalog(connection).values()];
  checkCatalog(connection, catalog, present);
  const whole = schemaFault(connection, {
    sql: [
      CREATE_DATABASE_SQL,
      ...(hasJournal(connection) ? [CREATE_JOURNAL_SQL] : []),
      ...(isMarked(connection) ? [CREATE_FOLLOWED_SQL] : []),
      ...(namesVersion(connection) ? [CREATE_SERVED_SQL] : []),
      ...catalog.flatMap((
        { number, indexes },
      ) => [createDocumentsSql(number), ...indexes.map((index) => createIndexSql(index, connection.format))]),
    ].join(";\n"),
  });
  if (whole !== null) throw damagedError(whole);
  return catalog;
}

function tableNames(database: StatementSource): readonly string[] {
  return database.statement("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
    .map(([name]) => String(name));
}

function checkState(connection: Connection): number {
  const [ts, lastCreationTime] =
    connection.statement("SELECT ts, lastCreationTime FROM syncline_state").get() ??
      [];
  if (!Number.isInteger(ts) || Number(ts) < 0 || !isCreationTime(lastCreationTime)) {
    throw damagedError("the row with its newest commit is missing or invalid");
  }
  const turn = connection.statement("SELECT slot FROM syncline_record_turn").get();
  if (turn === undefined) throw damagedError("the row with the state of the replay records is missing");
  return Number(ts);
}

/** Checks that all tables and indexes have their SQLite tables and that each index has a table. */
function checkCatalog(
  connection: Connection,
  catalog: readonly CatalogTable[],
  present: ReadonlySet<string>,
): void {
  const stray = connection.statement(
    `SELECT name, tableNumber FROM syncline_indexes
     WHERE tableNumber NOT IN (SELECT number FROM syncline_tables) LIMIT 1`,
  ).get();
  if (stray !== undefined) {
    throw damagedError(`index "${stray[0]}" belongs to table ${stray[1]}, which does not exist`);
  }
  for (const { name, number, indexes } of catalog) {
    if (!present.has(documentsTable(number))) {
      throw damagedError(`the documents of table "${name}" are missing`);
    }
    for (const index of indexes) {
      for (const sqlite of sqliteTablesOf(index)) {
        if (!present.has(sqlite)) throw damagedError(`index "${index.name}" of table "${name}" is missing`);
      }
    }
  }
}

function sqliteTablesOf({ kind, number }: CatalogIndex): readonly string[] {
  switch (kind) {
    case "fields":
      return [`i${number}`];
    case "search":
      return [`s${number}`, searchEntriesTable(number)];
    case "vector":
      return [`v${number}`, `w${number}`];
    case "aggregate":
      return [`a${number}`, `b${number}`];
    default:
      kind satisfies never;
      throw damagedError(`it has an index of the unknown kind "${String(kind)}"`);
  }
}

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
