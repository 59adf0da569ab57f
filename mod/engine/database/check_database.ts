/**
 * The complete check of a database that comes from elsewhere, before it takes the place of another: the file, the catalog,
 * and every document against every index of its table. Slow, and bounded in memory whatever the size of the data.
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

/** What a sound database holds. */
export interface CheckedDatabase {
  /** Its newest commit. */
  readonly ts: number;
  /** Tables, those of the service included. */
  readonly tables: number;
  /** Documents in all of them. */
  readonly documents: number;
}

/**
 * Checks a database file that nobody writes to. It is opened for reading; SQLite may leave `-wal` and `-shm` files beside
 * it. Throws an {@linkcode UnusableDatabaseError} with the reason when it is missing, foreign, newer or damaged.
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
 * SQLite's own check of a file that is not the service's database, and that its schema has nothing but what `schemaSql`
 * makes, which is given the names of its tables. Throws as above.
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

/** Checks the schema of a database file, before anything opens it for writing. Throws as above. */
export function checkDatabaseSchema(path: string): void {
  try {
    using connection = Connection.openReader(path);
    checkedCatalog(connection);
  } catch (error) {
    throw asUnusableDatabase(path, error);
  }
}

/** What a check threw, with the file it is about. */
export function asUnusableDatabase(path: string, error: unknown): UnusableDatabaseError {
  if (error instanceof UnusableDatabaseError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new UnusableDatabaseError(path, { reason, cause: error });
}

function check(connection: Connection): CheckedDatabase {
  const { ts, catalog } = checkFile(connection);
  return { ts, tables: catalog.length, documents: checkIndexes(connection, catalog) };
}

/** The file as SQLite sees it, and what the engine itself keeps in it. */
export function checkFile(
  connection: Connection,
): { readonly ts: number; readonly catalog: readonly CatalogTable[] } {
  const catalog = checkedCatalog(connection);
  // It covers search indexes, too.
  const fault = connection.statement("PRAGMA integrity_check(1)").get()?.[0];
  if (fault !== "ok") throw damagedError(String(fault));
  return { ts: checkState(connection), catalog };
}

/** Told how many documents were looked at, of how many. */
export type OnProgress = (done: number, of: number) => void;

/** Time between two such words. */
const PROGRESS_INTERVAL_MS = 200;

/** Every document against every index of its table. Gives the number of documents. */
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
 * The catalog of a database whose SQLite schema is exactly what the server makes for it. What the catalog is read from is
 * looked at first.
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

/** Gives the newest ts. */
function checkState(connection: Connection): number {
  const [ts, lastCreationTime] =
    connection.statement("SELECT ts, lastCreationTime FROM syncline_state").get() ??
      [];
  if (!Number.isInteger(ts) || Number(ts) < 0 || !isCreationTime(lastCreationTime)) {
    throw damagedError("the row with its newest commit is missing or makes no sense");
  }
  const turn = connection.statement("SELECT slot FROM syncline_record_turn").get();
  if (turn === undefined) throw damagedError("the row that says where replay records are kept is missing");
  return Number(ts);
}

/** Every table and index of the catalog has its SQLite tables, and no index is without a table. */
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
    throw damagedError(`index "${stray[0]}" belongs to table ${stray[1]}, which is not there`);
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
