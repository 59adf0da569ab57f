/** A read-only connection with one snapshot at a time, for queries and for previews of a schema change. */
import { type CatalogTable, loadTables, readCatalog, Tables, wantedIndexes } from "./catalog.ts";
import { Connection } from "./connection.ts";
import { checkSchema, isSame, iterateDocuments } from "./schema_change.ts";
import { type Difference, differenceText, firstDifference } from "./documents/schema_difference.ts";
import { fieldsOf, type StoredFields } from "./documents/system_fields.ts";
import { type CatalogIndex, indexEntries, indexSet } from "./indexes/index_set.ts";
import { QueryTransaction, type Snapshot } from "./query.ts";
import { documentsTable } from "./table.ts";
import type {
  ReaderDatabase,
  ReadTransaction,
  SchemaPreview,
  TableViolations,
  ViolationLimits,
} from "./transaction.ts";
import type { SchemaDefinition, TableDefinition } from "./types.ts";
import { VectorSearcher } from "./vectors/vector_search.ts";

/** Reads the open snapshot. Throws an `EngineError` for an invalid schema. */
function previewSchema(
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
function misfitReason(compare: () => Difference | null): string | null {
  try {
    const difference = compare();
    return difference === null ? null : `the schema would ${differenceText(difference)}`;
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause);
  }
}

function countOf(connection: Connection, number: number): number {
  return connection.statement(`SELECT count(*) FROM ${documentsTable(number)}`).get()?.[0] as number;
}

/** Opens a database for reading. Throws an `EngineError` if it is damaged, foreign or newer. */
export function openReaderDatabase(path: string, cacheBytes?: number): ReaderDatabase {
  return new SqliteReaderDatabase(Connection.openReader(path, cacheBytes));
}

class SqliteReaderDatabase implements ReaderDatabase {
  readonly #connection: Connection;
  readonly #vectors: VectorSearcher;
  #tables = new Tables([]);
  #snapshot: Snapshot | null = null;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#vectors = new VectorSearcher(connection);
  }

  useSchema(schema: SchemaDefinition, options: { readonly missing?: "refuse" | "leave" } = {}): void {
    this.#tables = loadTables(this.#connection, schema, { ...options, orphaned: true });
  }

  openSnapshot(): number {
    if (this.#snapshot !== null) throw new RangeError("A snapshot is open already");
    // The snapshot starts with the first read.
    this.#connection.statement("BEGIN").run();
    try {
      const ts = this.#connection.statement("SELECT ts FROM syncline_state").get()?.[0];
      this.#snapshot = { open: true };
      return ts as number;
    } catch (error) {
      if (this.#connection.inTransaction) this.#connection.statement("ROLLBACK").run();
      throw error;
    }
  }

  closeSnapshot(): void {
    if (this.#snapshot === null) throw new RangeError("No snapshot is open");
    this.#snapshot.open = false;
    this.#snapshot = null;
    if (this.#connection.inTransaction) this.#connection.statement("COMMIT").run();
  }

  beginQuery(): ReadTransaction {
    if (this.#snapshot === null) throw new RangeError("No snapshot is open");
    return new QueryTransaction({
      connection: this.#connection,
      tables: this.#tables,
      snapshot: this.#snapshot,
      vectors: this.#vectors,
    });
  }

  previewSchema(schema: SchemaDefinition, bounds: ViolationLimits): SchemaPreview {
    if (this.#snapshot === null) throw new RangeError("No snapshot is open");
    return previewSchema(this.#connection, schema, bounds);
  }

  [Symbol.dispose](): void {
    if (this.#snapshot !== null) this.closeSnapshot();
    this.#connection[Symbol.dispose]();
  }
}
