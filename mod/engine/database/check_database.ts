/**
 * The complete check of a database from elsewhere before it replaces another: the file, the catalog, and every document
 * in every index. Slow, with bounded memory.
 */
import { DatabaseSync } from "node:sqlite";
import { type CatalogTable, readCatalog } from "../catalog.ts";
import { Connection, prepareArrays } from "../connection.ts";
import { UnusableDatabaseError } from "../errors.ts";
import { type CatalogIndex, createIndexSql } from "../indexes/index_set.ts";
import { CREATE_FOLLOWED_SQL, isMarked } from "../journal/history_source.ts";
import { CREATE_JOURNAL_SQL, hasJournal } from "../journal/journal.ts";
import { CREATE_SERVED_SQL, namesVersion } from "../journal/served_version.ts";
import { checkTable, damagedError, searchEntriesTable } from "./check_indexes.ts";
import { CREATE_DATABASE_SQL } from "./new_database.ts";
import { schemaFault, type StatementSource } from "./sqlite_schema.ts";
import { isCreationTime } from "../documents/system_fields.ts";
import { createDocumentsSql, documentsTable } from "../table.ts";

/** Contents of a valid database. */
export interface CheckedDatabase {
  readonly ts: number;
  readonly tables: number;
  readonly documents: number;
}

/**
 * Checks a database file that no process writes to. SQLite may leave `-wal` and `-shm` files next to it. Throws an
 * {@linkcode UnusableDatabaseError} with the reason if it is missing, foreign, newer or damaged.
 */
export function checkDatabase(path: string): CheckedDatabase {
  try {
    using connection = Connection.openReader(path);
    return check(connection);
  } catch (error) {
    throw asUnusableDatabase(path, error);
  }
}

/**
 * Checks an SQLite file that is not the main database: its integrity, and that its schema has nothing but what
 * `schemaSql` creates for its tables. Throws as above.
 */
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

/** Converts an error of a check to one that names the file. */
export function asUnusableDatabase(path: string, error: unknown): UnusableDatabaseError {
  if (error instanceof UnusableDatabaseError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new UnusableDatabaseError(path, { reason, cause: error });
}

function check(connection: Connection): CheckedDatabase {
  const { ts, catalog } = checkFile(connection);
  return { ts, tables: catalog.length, documents: checkIndexes(connection, catalog) };
}

export function checkFile(
  connection: Connection,
): { readonly ts: number; readonly catalog: readonly CatalogTable[] } {
  const catalog = checkedCatalog(connection);
  // Includes search indexes.
  const fault = connection.statement("PRAGMA integrity_check(1)").get()?.[0];
  if (fault !== "ok") throw damagedError(String(fault));
  return { ts: checkState(connection), catalog };
}

/** Called with the number of checked documents and their total. */
export type OnProgress = (done: number, of: number) => void;

const PROGRESS_INTERVAL_MS = 200;

/** Checks every document in every index. Returns the number of documents. */
export function checkIndexes(
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
  let toldAt = performance.now();
  onChecked(0, of);
  return () => {
    done++;
    const now = performance.now();
    if (now - toldAt < PROGRESS_INTERVAL_MS) return;
    toldAt = now;
    onChecked(done, of);
  };
}

/**
 * Returns the catalog after checking that the SQLite schema is exactly what the server creates. The catalog's own
 * tables are checked first.
 */
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
    default:
      kind satisfies never;
      throw damagedError(`it has an index of the unknown kind "${String(kind)}"`);
  }
}
