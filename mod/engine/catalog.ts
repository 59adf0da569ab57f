/** The catalog: the numbers of tables and indexes in this database. Numbers are never reused. */
import type { AggregateIndex } from "./aggregates/aggregate_index.ts";
import type { Connection } from "./connection.ts";
import { EngineError } from "./errors.ts";
import { tableNumberOf } from "./documents/ids.ts";
import { indexSet } from "./indexes/index_set.ts";
import type { SearchIndex } from "./search/search_index.ts";
import { BY_CREATION_TIME, BY_ID, documentsTable, type Table, table } from "./table.ts";
import type { SchemaDefinition, TableDefinition, Value } from "./types.ts";
import type { VectorIndex } from "./vectors/vector_index.ts";
import type { ScanIndex } from "./indexes/field_index.ts";
import type { CatalogIndex, IndexKind } from "./indexes/index_set.ts";

export const CREATE_CATALOG_SQL = `
  CREATE TABLE syncline_tables (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT UNIQUE NOT NULL,
    fingerprint TEXT
  );
  CREATE TABLE syncline_indexes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tableNumber INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    definition TEXT NOT NULL,
    UNIQUE (tableNumber, name)
  );`;

export interface CatalogTable {
  readonly number: number;
  readonly name: string;
  readonly fingerprint: string | null;
  readonly indexes: readonly CatalogIndex[];
}

export function readCatalog(connection: Connection): Map<string, CatalogTable> {
  const indexesOf = new Map<number, CatalogIndex[]>();
  const indexRows = connection.statement(
    "SELECT tableNumber, number, name, kind, definition FROM syncline_indexes ORDER BY number",
  ).all() as [number, number, string, IndexKind, string][];
  for (const [tableNumber, number, name, kind, definition] of indexRows) {
    const list = indexesOf.get(tableNumber) ?? [];
    list.push({ number, name, kind, definition });
    indexesOf.set(tableNumber, list);
  }
  const tableRows = connection.statement(
    "SELECT number, name, fingerprint FROM syncline_tables ORDER BY number",
  )
    .all() as [number, string, string | null][];
  return new Map(
    tableRows.map(([number, name, fingerprint]) => [name, {
      number,
      name,
      fingerprint,
      indexes: indexesOf.get(number) ?? [],
    }]),
  );
}

export function wantedIndexes(definition: TableDefinition): Omit<CatalogIndex, "number">[] {
  return [
    { name: BY_CREATION_TIME, kind: "fields", definition: "[]" },
    ...definition.indexes.map(({ name, fields }) => ({
      name,
      kind: "fields" as const,
      definition: JSON.stringify(fields),
    })),
    ...definition.searchIndexes.map(({ name, searchField, filterFields }) => ({
      name,
      kind: "search" as const,
      definition: JSON.stringify([searchField, filterFields]),
    })),
    ...definition.vectorIndexes.map(({ name, vectorField, dimensions, filterFields }) => ({
      name,
      kind: "vector" as const,
      definition: JSON.stringify([vectorField, dimensions, filterFields]),
    })),
    ...(definition.aggregates ?? []).map(({ name, by, sum }) => ({
      name,
      kind: "aggregate" as const,
      definition: JSON.stringify([by, sum]),
    })),
  ];
}

export class Tables {
  /** Stored tables that the schema lacks, by name. Ids do not lead to them. */
  readonly orphaned: ReadonlyMap<string, Table>;
  readonly #byName = new Map<string, Table>();
  readonly #byNumber = new Map<number, Table>();

  constructor(tables: readonly Table[], orphaned: readonly Table[] = []) {
    this.orphaned = new Map(orphaned.map((table) => [table.name, table]));
    for (const table of tables) {
      this.#byName.set(table.name, table);
      this.#byNumber.set(table.number, table);
    }
  }

  /** Returns the table with this name. Throws an `EngineError` if there is none. */
  named(name: string): Table {
    const table = this.#byName.get(name) ?? this.orphaned.get(name);
    if (table !== undefined) return table;
    const app = [...this.#byName.keys()].filter((known) => !known.startsWith("_"));
    throw new EngineError(
      "unknown_table",
      `There is no table "${name}" in the schema; its tables are ${listNames(app)}`,
    );
  }

  /** Returns all tables, the orphaned ones last. */
  all(): Table[] {
    return [...this.#byName.values(), ...this.orphaned.values()];
  }

  /** Returns the table of an id, or `undefined` if the string is not an id of a known table. */
  ofId(id: string): Table | undefined {
    return this.#byNumber.get(tableNumberOf(id));
  }

  /** Returns an index to scan. Throws an `EngineError` that lists the table's indexes. */
  index(table: Table, name: string): ScanIndex {
    const index = table.scans.get(name);
    if (index !== undefined) return index;
    const { searchIndexes, vectorIndexes } = table.definition;
    if (searchIndexes.some((search) => search.name === name)) {
      throw new EngineError(
        "unknown_index",
        `"${name}" of table "${table.name}" is a search index: search in it`,
      );
    }
    if (vectorIndexes.some((vector) => vector.name === name)) {
      throw new EngineError(
        "unknown_index",
        `"${name}" of table "${table.name}" is a vector index: search in it`,
      );
    }
    if (table.indexes.aggregates.some((aggregate) => aggregate.name === name)) {
      throw new EngineError(
        "unknown_index",
        `"${name}" of table "${table.name}" is an aggregate: read it with ctx.db.aggregate`,
      );
    }
    const scans = [...table.scans.values()].map((index) =>
      index.name === BY_ID ? BY_ID : `${index.name} (${index.boundFields.join(", ")})`
    );
    throw new EngineError(
      "unknown_index",
      `Table "${table.name}" has no index "${name}"; its indexes are ${listNames(scans)}. ` +
        `Add it in schema.ts: .index("${name}", ["field"])`,
    );
  }

  /** Returns a search index. Throws an `EngineError` that lists the table's search indexes. */
  searchIndex(table: Table, name: string): SearchIndex {
    const { searches } = table.indexes;
    const index = searches.find((search) => search.name === name);
    if (index !== undefined) return index;
    throw unknownSearch(table, { kind: "search", name, known: searches.map((search) => search.name) });
  }

  /** Returns a vector index. Throws an `EngineError` that lists the table's vector indexes. */
  vectorIndex(table: Table, name: string): VectorIndex {
    const { vectors } = table.indexes;
    const index = vectors.find((vector) => vector.name === name);
    if (index !== undefined) return index;
    throw unknownSearch(table, { kind: "vector", name, known: vectors.map((vector) => vector.name) });
  }

  /** Returns an aggregate. Throws an `EngineError` that lists the table's aggregates. */
  aggregate(table: Table, name: string): AggregateIndex {
    const { aggregates } = table.indexes;
    const index = aggregates.find((aggregate) => aggregate.name === name);
    if (index !== undefined) return index;
    throw new EngineError(
      "unknown_index",
      `Table "${table.name}" has no aggregate "${name}"; its aggregates are ${
        listNames(aggregates.map((aggregate) => `${aggregate.name} (${aggregate.boundFields.join(", ")})`))
      }`,
    );
  }
}

function unknownSearch(
  table: Table,
  request: { readonly kind: string; readonly name: string; readonly known: readonly string[] },
): EngineError {
  const { kind, name, known } = request;
  return new EngineError(
    "unknown_index",
    `Table "${table.name}" has no ${kind} index "${name}"; its ${kind} indexes are ${listNames(known)}`,
  );
}

/** Joins names for a message, up to 20. */
function listNames(names: readonly string[]): string {
  if (names.length === 0) return "none";
  const shown = names.slice(0, 20).join(", ");
  return names.length > 20 ? `${shown} and ${names.length - 20} more` : shown;
}

/** Returns the tables of a schema with their numbers. Throws if the schema has not been applied to the database. */
export function loadTables(
  connection: Connection,
  schema: SchemaDefinition,
  { missing = "refuse", orphaned = false }: {
    /** Treatment of tables and indexes that the database does not have. */
    readonly missing?: "refuse" | "leave";
    /** Whether to load the app's stored tables that the schema lacks, too. */
    readonly orphaned?: boolean;
  } = {},
): Tables {
  const catalog = readCatalog(connection);
  const tables: Table[] = [];
  for (const [name, definition] of schema) {
    const known = catalog.get(name);
    if (known === undefined) {
      if (missing === "leave") continue;
      throw notApplied(name);
    }
    const numberOf = new Map(
      known.indexes.map((index) => [`${index.name} ${index.kind} ${index.definition}`, index.number]),
    );
    const numbered = wantedIndexes(definition).flatMap((wanted) => {
      const number = numberOf.get(`${wanted.name} ${wanted.kind} ${wanted.definition}`);
      if (number !== undefined) return [{ ...wanted, number }];
      if (missing === "leave") return [];
      throw notApplied(name);
    });
    const indexes = indexSet(documentsTable(known.number), numbered);
    tables.push(table(name, { number: known.number, definition, indexes }));
  }
  const others = orphaned
    ? [...catalog.values()].filter(({ name }) => !schema.has(name) && !name.startsWith("_"))
    : [];
  return new Tables(
    tables,
    others.map((stored) =>
      table(stored.name, {
        number: stored.number,
        definition: storedDefinition(stored),
        indexes: indexSet(documentsTable(stored.number), stored.indexes),
      })
    ),
  );
}

/** Returns the definition of a stored table without validation and vector indexes. */
export function storedDefinition({ indexes }: CatalogTable): TableDefinition {
  const of = (kind: IndexKind) =>
    indexes.filter((index) => index.kind === kind)
      .map(({ name, definition }) => ({ name, parsed: JSON.parse(definition) }));
  return {
    ...uncheckedTable,
    indexes: of("fields").filter(({ name }) => name !== BY_CREATION_TIME)
      .map(({ name, parsed: fields }) => ({ name, fields })),
    searchIndexes: of("search").map(({ name, parsed: [searchField, filterFields] }) => ({
      name,
      searchField,
      filterFields,
    })),
  };
}

/** A table without indexes that accepts all documents. */
export const uncheckedTable: TableDefinition = {
  indexes: [],
  searchIndexes: [],
  vectorIndexes: [],
  validate: (fields) => fields as Record<string, Value>,
};

export function storedTables(connection: Connection): Tables {
  const definition = uncheckedTable;
  return new Tables(
    [...readCatalog(connection).values()].map(({ name, number, indexes }) =>
      table(name, { number, definition, indexes: indexSet(documentsTable(number), indexes) })
    ),
  );
}

function notApplied(name: string): EngineError {
  return new EngineError("bad_schema", `The schema of table "${name}" has not been applied to this database`);
}
