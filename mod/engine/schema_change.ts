/** Applies a schema to a database, all or nothing. */
import { documentLimits } from "../limits.ts";
import { checkAggregateDefinition } from "./aggregates/aggregate_index.ts";
import { addEntry, computeNodes } from "./aggregates/aggregate_nodes.ts";
import { type CatalogTable, readCatalog, wantedIndexes } from "./catalog.ts";
import type { Connection } from "./connection.ts";
import { TABLE_NUMBER_MAX } from "./documents/ids.ts";
import { type Difference, firstDifference } from "./documents/schema_difference.ts";
import { fieldsOf, type StoredFields } from "./documents/system_fields.ts";
import { EngineError, SchemaError } from "./errors.ts";
import {
  type CatalogIndex,
  createIndexSql,
  dropIndexSql,
  type IndexEntries,
  indexEntries,
  type IndexSet,
  indexSet,
} from "./indexes/index_set.ts";
import { engineLimits } from "./limits.ts";
import { BY_CREATION_TIME, BY_ID, createDocumentsSql, documentsTable } from "./table.ts";
import type { SchemaDefinition, SchemaReport, TableDefinition } from "./types.ts";
import { checkVectorDefinition } from "./vectors/vector_index.ts";

export type DocumentRow = readonly [rid: number, id: string, text: string];

/** `documents` is the SQLite table. Other tables may be written during the iteration. */
export function* iterateDocuments(connection: Connection, documents: string): Generator<DocumentRow> {
  const select = `SELECT rid, id, doc FROM ${documents} WHERE rid > ? ORDER BY rid LIMIT ?+0`;
  let last = Number.MIN_SAFE_INTEGER;
  let wanted = 1;
  for (;;) {
    const rows = connection.statement(select).all(last, wanted) as unknown as DocumentRow[];
    let chars = 1;
    for (const row of rows) {
      const [rid, , text] = row;
      last = rid;
      chars += text.length;
      yield row;
    }
    if (rows.length < wanted) return;
    const fitting = Math.floor(engineLimits.scanCharsAimed / (chars / rows.length));
    wanted = Math.max(1, Math.min(engineLimits.migrationRows, fitting));
  }
}

/**
 * Applies a schema inside the open transaction. `tableNumbers` are the numbers of new tables. Validates documents if
 * the definition of their table may have changed, but does not rewrite them. Tables that are no longer in the schema
 * keep their documents, which become inaccessible. Throws an `EngineError` for an invalid schema and a `SchemaError`
 * for a document that does not match.
 */
export function changeSchema(
  connection: Connection,
  schema: SchemaDefinition,
  { tableNumbers }: { readonly tableNumbers: ReadonlyMap<string, number> },
): SchemaReport {
  checkSchema(schema);
  const catalog = readCatalog(connection);
  const report = {
    createdTables: [] as string[],
    createdIndexes: [] as string[],
    droppedIndexes: [] as string[],
  };
  // Tables with a fixed number come first, so that no other takes it.
  const inOrder = [...schema].sort(([a], [b]) => Number(tableNumbers.has(b)) - Number(tableNumbers.has(a)));
  // In a new database the other tables get the numbers that they have everywhere: ids contain them.
  const free = catalog.size === 0 ? freeNumbers(new Set(tableNumbers.values())) : null;
  for (const [name, definition] of inOrder) {
    const known = catalog.get(name);
    if (known !== undefined) checkNumber(known, tableNumbers.get(name));
    const table = known ?? createTable(connection, name, tableNumbers.get(name) ?? free?.next().value);
    if (known === undefined) report.createdTables.push(name);
    const { created, dropped } = changeIndexes(connection, { table, definition });
    for (const index of dropped) report.droppedIndexes.push(`${name}.${index.name}`);
    if (known !== undefined) {
      for (const index of created) report.createdIndexes.push(`${name}.${index.name}`);
      const unchanged = definition.fingerprint !== undefined && definition.fingerprint === table.fingerprint;
      if (!unchanged || created.length > 0) {
        validateAndIndexTable(connection, { table, definition, created, check: !unchanged });
      }
    }
    connection.statement("UPDATE syncline_tables SET fingerprint = ? WHERE number = ?")
      .run(definition.fingerprint ?? null, table.number);
  }
  const unreachableTables = [...catalog.keys()].filter((name) => !schema.has(name));
  return { ...report, unreachableTables };
}

function* freeNumbers(taken: ReadonlySet<number>): Generator<number, never> {
  for (let number = 1;; number++) if (!taken.has(number)) yield number;
}

/** Creates a table with this number or the next free one. */
export function createTable(connection: Connection, name: string, wanted?: number): CatalogTable {
  const taken = wanted !== undefined &&
    connection.statement("SELECT name FROM syncline_tables WHERE number = ?").get(wanted)?.[0];
  if (typeof taken === "string") {
    throw new EngineError(
      "bad_schema",
      `Cannot create table "${name}": its number ${wanted} is that of "${taken}"`,
    );
  }
  const number = connection.statement("INSERT INTO syncline_tables (number, name) VALUES (?, ?)")
    .run(wanted ?? null, name).lastInsertRowid;
  if (number > TABLE_NUMBER_MAX) {
    throw new EngineError(
      "bad_schema",
      `Cannot create table "${name}": the database has used up all table numbers`,
    );
  }
  connection.execute(createDocumentsSql(number));
  return { number, name, fingerprint: null, indexes: [] };
}

/** Throws if a table with imported ids has another number here. */
function checkNumber(known: CatalogTable, number: number | undefined): void {
  if (number === undefined || number === known.number) return;
  throw new EngineError(
    "bad_schema",
    `Table "${known.name}" has number ${known.number} in this database, and its ids elsewhere have ${number}: ` +
      "begin with an empty database",
  );
}

/** Drops removed indexes and creates new ones, still empty. */
function changeIndexes(
  connection: Connection,
  { table, definition }: { readonly table: CatalogTable; readonly definition: TableDefinition },
): { readonly created: CatalogIndex[]; readonly dropped: readonly CatalogIndex[] } {
  const wanted = wantedIndexes(definition);
  const dropped = table.indexes.filter((index) => !wanted.some((other) => isSame(index, other)));
  for (const index of dropped) {
    connection.execute(dropIndexSql(index));
    connection.statement("DELETE FROM syncline_indexes WHERE number = ?").run(index.number);
  }
  const created: CatalogIndex[] = [];
  for (const index of wanted) {
    if (table.indexes.some((other) => isSame(index, other))) continue;
    const number = connection.statement(
      "INSERT INTO syncline_indexes (tableNumber, name, kind, definition) VALUES (?, ?, ?, ?)",
    ).run(table.number, index.name, index.kind, index.definition).lastInsertRowid;
    const made = { ...index, number };
    connection.execute(createIndexSql(made));
    created.push(made);
  }
  return { created, dropped };
}

export function isSame(a: Omit<CatalogIndex, "number">, b: Omit<CatalogIndex, "number">): boolean {
  return a.name === b.name && a.kind === b.kind && a.definition === b.definition;
}

/**
 * Validates all documents of a table, a few at a time, and adds them to new indexes. Documents that the schema would
 * change are counted and refused. Defaults are not applied on reads, because indexes, exports, copies and checks do not
 * know the schema.
 */
export function validateAndIndexTable(
  connection: Connection,
  work: {
    readonly table: CatalogTable;
    readonly definition: TableDefinition;
    readonly created: readonly CatalogIndex[];
    readonly check: boolean;
  },
): void {
  const { table, definition, check } = work;
  const documents = documentsTable(table.number);
  const indexes = indexSet(documents, work.created);
  let changed = 0;
  let first: { readonly id: string; readonly difference: Difference } | null = null;
  for (const [rid, , text] of iterateDocuments(connection, documents)) {
    const doc = JSON.parse(text) as StoredFields;
    try {
      const fields = fieldsOf(doc);
      const difference = check ? firstDifference(fields, definition.validate(fields)) : null;
      if (difference !== null) {
        changed++;
        first ??= { id: doc._id, difference };
      }
      if (changed > 0) continue;
      enter(connection, { indexes, rid, entries: indexEntries(indexes, doc) });
    } catch (cause) {
      throw new SchemaError(table.name, doc._id, {
        reason: cause instanceof Error ? cause.message : String(cause),
        cause,
      });
    }
  }
  if (first !== null) throw new SchemaError(table.name, first.id, { changed, difference: first.difference });
  for (const index of indexes.aggregates) computeNodes(connection, index);
}

/** Adds a document to new indexes. */
function enter(
  connection: Connection,
  row: { readonly indexes: IndexSet; readonly rid: number; readonly entries: IndexEntries },
): void {
  const { indexes, rid, entries } = row;
  indexes.fields.forEach(({ writeSql }, position) => {
    connection.statement(writeSql.insert).run(entries.keys[position] ?? "", rid);
  });
  indexes.searches.forEach(({ sql }, position) => {
    const entry = entries.searches[position] ?? null;
    if (entry !== null) connection.statement(sql.insert).run(rid, entry.text, entry.filters);
  });
  indexes.vectors.forEach(({ sql }, position) => {
    const entry = entries.vectors[position] ?? null;
    if (entry !== null) {
      connection.statement(sql.insert).run(rid, new Uint8Array(entry.vector.buffer), entry.filters);
    }
  });
  indexes.aggregates.forEach((index, position) => {
    const entry = entries.aggregates[position];
    if (entry !== undefined) addEntry(connection, index, { rid, entry });
  });
}

/** Throws for a schema that no database can have. */
export function checkSchema(schema: SchemaDefinition): void {
  if (schema.size > documentLimits.tablesMax) {
    throw new EngineError(
      "bad_schema",
      `The schema has ${schema.size} tables and the limit is ${documentLimits.tablesMax}`,
    );
  }
  for (const [name, definition] of schema) checkTable(name, definition);
}

function checkTable(
  table: string,
  { indexes, searchIndexes, vectorIndexes, aggregates = [] }: TableDefinition,
): void {
  const names = new Set([BY_ID, BY_CREATION_TIME]);
  for (const { name } of [...indexes, ...searchIndexes, ...vectorIndexes, ...aggregates]) {
    if (names.has(name)) {
      const reason = name === BY_ID || name === BY_CREATION_TIME
        ? "every table already has an index of this name"
        : "the name is used twice";
      throw new EngineError("bad_schema", `Cannot create index "${name}" of table "${table}": ${reason}`);
    }
    names.add(name);
  }
  if (names.size - 2 > documentLimits.indexesPerTableMax) {
    throw new EngineError(
      "bad_schema",
      `Table "${table}" has ${names.size - 2} indexes and the limit is ${documentLimits.indexesPerTableMax}`,
    );
  }
  for (const definition of vectorIndexes) checkVectorDefinition(table, definition);
  for (const definition of aggregates) checkAggregateDefinition(table, definition);
  for (const { name, fields } of [...indexes, ...aggregates.map(({ name, by }) => ({ name, fields: by }))]) {
    if (fields.length === 0 || fields.length > documentLimits.indexFieldsMax) {
      throw new EngineError(
        "bad_schema",
        `Index "${name}" of table "${table}" has ${fields.length} fields: it needs 1 to ${documentLimits.indexFieldsMax}`,
      );
    }
  }
}
