/**
 * The complete check of a database that comes from elsewhere, before it takes the place of another: the file, the catalog,
 * and every document against every index of its table. Slow, and bounded in memory whatever the size of the data.
 */
import { DatabaseSync } from "node:sqlite";
import { type CatalogTable, readCatalog } from "../catalog.ts";
import { Connection, prepareArrays } from "../connection.ts";
import { walkDocuments } from "../documents/document_walk.ts";
import { UnusableDatabaseError } from "../errors.ts";
import { tableNumberOf } from "../documents/ids.ts";
import {
  type CatalogIndex,
  createIndexSql,
  indexEntries,
  type IndexSet,
  indexSet,
} from "../indexes/index_set.ts";
import { CREATE_FOLLOWED_SQL, isMarked } from "../journal/followed.ts";
import { CREATE_JOURNAL_SQL, hasJournal } from "../journal/journal.ts";
import { CREATE_DATABASE_SQL } from "./new_database.ts";
import { type Prepares, schemaFault } from "./sqlite_schema.ts";
import type { StoredFields } from "../documents/stored_fields.ts";
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
    throw unusable(path, error);
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
    if (schema !== null) throw damage(schema);
    const fault = Object.values(db.prepare("PRAGMA integrity_check(1)").get() ?? {})[0];
    if (fault !== "ok") throw damage(String(fault));
  } catch (error) {
    throw unusable(path, error);
  }
}

/** Checks the schema of a database file, before anything opens it for writing. Throws as above. */
export function checkDatabaseSchema(path: string): void {
  try {
    using connection = Connection.openReader(path);
    checkedCatalog(connection);
  } catch (error) {
    throw unusable(path, error);
  }
}

/** What a check threw, with the file it is about. */
export function unusable(path: string, error: unknown): UnusableDatabaseError {
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
  if (fault !== "ok") throw damage(String(fault));
  return { ts: checkState(connection), catalog };
}

/** Every document against every index of its table. Gives the number of documents. */
export function checkIndexes(connection: Connection, catalog: readonly CatalogTable[]): number {
  let documents = 0;
  for (const table of catalog) documents += checkDocuments(connection, table);
  return documents;
}

/**
 * The catalog of a database whose SQLite schema is exactly what the server makes for it. What the catalog is read from is
 * looked at first.
 */
function checkedCatalog(connection: Connection): readonly CatalogTable[] {
  const own = schemaFault(connection, { sql: CREATE_DATABASE_SQL, others: true });
  if (own !== null) throw damage(own);
  const present = new Set(tableNames(connection));
  const catalog = [...readCatalog(connection).values()];
  checkCatalog(connection, catalog, present);
  const whole = schemaFault(connection, {
    sql: [
      CREATE_DATABASE_SQL,
      ...(hasJournal(connection) ? [CREATE_JOURNAL_SQL] : []),
      ...(isMarked(connection) ? [CREATE_FOLLOWED_SQL] : []),
      ...catalog.flatMap((
        { number, indexes },
      ) => [createDocumentsSql(number), ...indexes.map(createIndexSql)]),
    ].join(";\n"),
  });
  if (whole !== null) throw damage(whole);
  return catalog;
}

function tableNames(database: Prepares): readonly string[] {
  return database.statement("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
    .map(([name]) => String(name));
}

/** Gives the newest ts. */
function checkState(connection: Connection): number {
  const [ts, lastCreationTime] =
    connection.statement("SELECT ts, lastCreationTime FROM syncline_state").get() ??
      [];
  if (!Number.isInteger(ts) || Number(ts) < 0 || !isCreationTime(lastCreationTime)) {
    throw damage("the row with its newest commit is missing or makes no sense");
  }
  const turn = connection.statement("SELECT slot FROM syncline_record_turn").get();
  if (turn === undefined) throw damage("the row that says where replay records are kept is missing");
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
    throw damage(`index "${stray[0]}" belongs to table ${stray[1]}, which is not there`);
  }
  for (const { name, number, indexes } of catalog) {
    if (!present.has(documentsTable(number))) throw damage(`the documents of table "${name}" are missing`);
    for (const index of indexes) {
      for (const sqlite of sqliteTablesOf(index)) {
        if (!present.has(sqlite)) throw damage(`index "${index.name}" of table "${name}" is missing`);
      }
    }
  }
}

function sqliteTablesOf({ kind, number }: CatalogIndex): readonly string[] {
  switch (kind) {
    case "fields":
      return [`i${number}`];
    case "search":
      return [`s${number}`, entriesTableOfSearch(number)];
    case "vector":
      return [`v${number}`, `w${number}`];
    default:
      kind satisfies never;
      throw damage(`it has an index of the unknown kind "${String(kind)}"`);
  }
}

/** FTS5 has a row in it for each document. */
function entriesTableOfSearch(number: number): string {
  return `s${number}_docsize`;
}

/**
 * Every document has in every index the entry it should have. Entries of different documents differ, so when the index
 * has as many entries as were found, it has no others. Gives the number of documents.
 */
function checkDocuments(connection: Connection, { name, number, indexes: catalog }: CatalogTable): number {
  const documents = documentsTable(number);
  const indexes = indexSet(documents, catalog);
  const searchesFound = indexes.searches.map(() => 0);
  const vectorsFound = indexes.vectors.map(() => 0);
  let count = 0;
  for (const [rid, id, text] of walkDocuments(connection, documents)) {
    count++;
    const doc = parsed(text, { table: name, number, id });
    const missing = (index: string) =>
      damage(`index "${index}" of table "${name}" does not hold document "${id}" as it is`);
    const entries = indexEntries(indexes, doc);
    indexes.fields.forEach((index, position) => {
      const row = connection.statement(`SELECT rid FROM i${index.number} WHERE key = ?`)
        .get(entries.keys[position] ?? "");
      if (row?.[0] !== rid) throw missing(index.name);
    });
    indexes.searches.forEach((index, position) => {
      if ((entries.searches[position] ?? null) === null) return;
      searchesFound[position] = (searchesFound[position] ?? 0) + 1;
      const row = connection.statement(`SELECT 1 FROM ${entriesTableOfSearch(index.number)} WHERE id = ?`)
        .get(rid);
      if (row === undefined) throw missing(index.name);
    });
    indexes.vectors.forEach((index, position) => {
      const entry = entries.vectors[position] ?? null;
      if (entry === null) return;
      vectorsFound[position] = (vectorsFound[position] ?? 0) + 1;
      const row = connection.statement(`SELECT length(vector), filters FROM v${index.number} WHERE rid = ?`)
        .get(rid);
      if (row?.[0] !== entry.vector.byteLength || row[1] !== entry.filters) throw missing(index.name);
    });
  }
  checkCounts(connection, { name, indexes, count, searchesFound, vectorsFound });
  return count;
}

interface FoundEntries {
  readonly name: string;
  readonly indexes: IndexSet;
  readonly count: number;
  readonly searchesFound: readonly number[];
  readonly vectorsFound: readonly number[];
}

function checkCounts(connection: Connection, found: FoundEntries): void {
  const { name, indexes, count, searchesFound, vectorsFound } = found;
  const expected: [index: string, sqlite: string, entries: number][] = [
    ...indexes.fields.map((index) => [index.name, `i${index.number}`, count] as [string, string, number]),
    ...indexes.searches.map((index, position) =>
      [index.name, entriesTableOfSearch(index.number), searchesFound[position] ?? 0] as [
        string,
        string,
        number,
      ]
    ),
    ...indexes.vectors.map((index, position) =>
      [index.name, `v${index.number}`, vectorsFound[position] ?? 0] as [string, string, number]
    ),
  ];
  for (const [index, sqlite, entries] of expected) {
    const there = Number(connection.statement(`SELECT count(*) FROM ${sqlite}`).get()?.[0]);
    if (there !== entries) {
      throw damage(
        `index "${index}" of table "${name}" has ${there} entries where the documents make ${entries}`,
      );
    }
  }
}

/** A stored document as an object; throws when it is not one of its table under its own id. */
function parsed(
  text: string,
  { table, number, id }: { readonly table: string; readonly number: number; readonly id: string },
): StoredFields {
  let doc: unknown;
  try {
    doc = JSON.parse(text);
  } catch {
    throw damage(`document "${id}" of table "${table}" is not JSON`);
  }
  const { _id, _creationTime } = (doc ?? {}) as Partial<StoredFields>;
  if (_id !== id || typeof _creationTime !== "number" || tableNumberOf(id) !== number) {
    throw damage(`document "${id}" of table "${table}" has another id or no creation time`);
  }
  if (!isCreationTime(_creationTime)) {
    throw damage(`document "${id}" of table "${table}" has ${_creationTime} for its creation time`);
  }
  return doc as StoredFields;
}

function damage(what: string): Error {
  return new Error(`the database is damaged: ${what}`);
}
