/** Finds out without writing what a schema would change and which documents do not match it. */
import { type CatalogTable, readCatalog, wantedIndexes } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import { iterateDocuments } from "../documents/iterate_documents.ts";
import { type Difference, differenceText, firstDifference } from "../documents/schema_difference.ts";
import { fieldsOf, type StoredFields } from "../documents/stored_fields.ts";
import { type CatalogIndex, indexEntries, indexSet } from "../indexes/index_set.ts";
import { checkSchema, isSame } from "../schema_change.ts";
import { documentsTable } from "../table.ts";
import type { SchemaPreview, TableViolations, ViolationLimits } from "../transaction.ts";
import type { SchemaDefinition, TableDefinition } from "../types.ts";

/** Reads the open snapshot. Throws an `EngineError` for an invalid schema. */
export function previewSchema(
  connection: Connection,
  schema: SchemaDefinition,
  bounds: ViolationLimits,
): SchemaPreview {
  checkSchema(schema);
  const catalog = readCatalog(connection);
  const createdTables: string[] = [];
  const createdIndexes: string[] = [];
  const droppedIndexes: string[] = [];
  const misfits: TableViolations[] = [];
  for (const [name, definition] of schema) {
    const table = catalog.get(name);
    if (table === undefined) {
      createdTables.push(name);
      continue;
    }
    const { created, dropped } = indexChanges(table, definition);
    createdIndexes.push(...created.map((index) => `${name}.${index.name}`));
    droppedIndexes.push(...dropped.map((index) => `${name}.${index.name}`));
    const unchanged = definition.fingerprint !== undefined && definition.fingerprint === table.fingerprint;
    if (unchanged && created.length === 0) continue;
    const found = misfitsOf(connection, { table, definition, created, check: !unchanged, bounds });
    if (found.documents > 0) misfits.push(found);
  }
  const unreachable = [...catalog.values()].filter(({ name }) => !schema.has(name))
    .map(({ name, number }) => ({ table: name, documents: countOf(connection, number) }))
    .filter(({ documents }) => documents > 0);
  return { createdTables, createdIndexes, droppedIndexes, unreachable, misfits };
}

function indexChanges(
  table: CatalogTable,
  definition: TableDefinition,
): { readonly created: readonly CatalogIndex[]; readonly dropped: readonly CatalogIndex[] } {
  const wanted = wantedIndexes(definition);
  return {
    created: wanted.filter((index) => !table.indexes.some((known) => isSame(known, index)))
      // It gets its number when it is created.
      .map((index) => ({ ...index, number: 0 })),
    dropped: table.indexes.filter((known) => !wanted.some((index) => isSame(known, index))),
  };
}

function misfitsOf(
  connection: Connection,
  { table, definition, created, check, bounds }: {
    readonly table: CatalogTable;
    readonly definition: TableDefinition;
    readonly created: readonly CatalogIndex[];
    readonly check: boolean;
    readonly bounds: ViolationLimits;
  },
): TableViolations {
  const documents = documentsTable(table.number);
  const indexes = indexSet(documents, created);
  const first: { id: string; reason: string }[] = [];
  let count = 0;
  for (const [, , text] of iterateDocuments(connection, documents)) {
    const doc = JSON.parse(text) as StoredFields;
    const reason = misfitReason(() => {
      const fields = fieldsOf(doc);
      const difference = check ? firstDifference(fields, definition.validate(fields)) : null;
      indexEntries(indexes, doc);
      return difference;
    });
    if (reason === null) continue;
    count++;
    if (first.length >= bounds.documentsMax) continue;
    first.push({ id: String(doc._id), reason: reason.slice(0, bounds.charsMax) });
  }
  return { table: table.name, documents: count, first };
}

/** Returns why a document does not match; `null` if it does. */
function misfitReason(look: () => Difference | null): string | null {
  try {
    const difference = look();
    return difference === null ? null : `the schema would ${differenceText(difference)}`;
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause);
  }
}

function countOf(connection: Connection, number: number): number {
  return connection.statement(`SELECT count(*) FROM ${documentsTable(number)}`).get()?.[0] as number;
}
