/** The catalog in journal rows: tables and indexes with their numbers, and the version of the app's code that a cluster runs. */
import { readCatalog, uncheckedTable } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { type CatalogIndex, createIndexSql, dropIndexSql } from "../indexes/index_set.ts";
import { createTable, validateAndIndexTable } from "../schema_change.ts";

export const CREATE_SERVED_SQL =
  `CREATE TABLE syncline_served (one INTEGER PRIMARY KEY CHECK (one = 1), version TEXT NOT NULL)`;

type Statements = Pick<Connection, "statement">;

export function namesVersion(connection: Statements): boolean {
  return connection.statement("SELECT 1 FROM sqlite_schema WHERE name = 'syncline_served'").get() !==
    undefined;
}

/** Returns the version's hash; `null` if each server serves what it was started with. */
export function servedVersion(connection: Statements): string | null {
  if (!namesVersion(connection)) return null;
  const version = connection.statement("SELECT version FROM syncline_served").get()?.[0];
  return typeof version === "string" ? version : null;
}

/** Sets or clears the version, inside the open transaction. */
export function setServedVersion(connection: Connection, version: string | null): void {
  if (version === servedVersion(connection)) return;
  if (namesVersion(connection)) connection.execute("DROP TABLE syncline_served");
  if (version === null) return;
  connection.execute(CREATE_SERVED_SQL);
  connection.statement("INSERT INTO syncline_served (one, version) VALUES (1, ?)").run(version);
}

/** All tables and indexes of a database, and the highest numbers ever used. */
export interface CatalogState {
  readonly tables: readonly (readonly [number: number, name: string, fingerprint: string | null])[];
  readonly indexes: readonly (readonly [
    number: number,
    tableNumber: number,
    name: string,
    kind: CatalogIndex["kind"],
    definition: string,
  ])[];
  readonly highest: readonly [table: number, index: number];
  /** The version of the code that a cluster runs from this commit on. */
  readonly code?: string;
}

export function catalogState(connection: Connection): CatalogState {
  const catalog = [...readCatalog(connection).values()];
  const code = servedVersion(connection);
  return {
    tables: catalog.map(({ number, name, fingerprint }) => [number, name, fingerprint]),
    indexes: catalog.flatMap((table) =>
      table.indexes.map(({ number, name, kind, definition }) =>
        [number, table.number, name, kind, definition] as const
      )
    ),
    highest: [highestOf(connection, "syncline_tables"), highestOf(connection, "syncline_indexes")],
    ...(code !== null && { code }),
  };
}

function highestOf(connection: Connection, table: string): number {
  const row = connection.statement("SELECT seq FROM sqlite_sequence WHERE name = ?").get(table);
  return typeof row?.[0] === "number" ? row[0] : 0;
}

/** Changes tables and indexes in the open transaction. Throws an `EngineError` for an impossible state. */
export function applyCatalog(connection: Connection, wanted: CatalogState): void {
  setServedVersion(connection, wanted.code ?? null);
  const known = readCatalog(connection);
  for (const [number, name] of wanted.tables) {
    const table = known.get(name);
    if (table === undefined) known.set(name, createTable(connection, name, number));
    else if (table.number !== number) {
      throw new EngineError(
        "bad_entry",
        `Table "${name}" has number ${table.number} here and ${number} there`,
      );
    }
  }
  const indexes = new Map(wanted.indexes.map((index) => [index[0], index]));
  for (const table of known.values()) {
    for (const index of table.indexes) {
      const other = indexes.get(index.number);
      if (other !== undefined && other[2] === index.name && other[4] === index.definition) {
        indexes.delete(index.number);
        continue;
      }
      connection.execute(dropIndexSql(index));
      connection.statement("DELETE FROM syncline_indexes WHERE number = ?").run(index.number);
    }
  }
  const created = new Map<number, CatalogIndex[]>();
  for (const [number, tableNumber, name, kind, definition] of indexes.values()) {
    const index: CatalogIndex = { number, name, kind, definition };
    connection.statement(
      "INSERT INTO syncline_indexes (number, tableNumber, name, kind, definition) VALUES (?, ?, ?, ?, ?)",
    ).run(number, tableNumber, name, kind, definition);
    connection.execute(createIndexSql(index));
    created.set(tableNumber, [...created.get(tableNumber) ?? [], index]);
  }
  for (const table of known.values()) {
    const indexes = created.get(table.number);
    if (indexes === undefined) continue;
    validateAndIndexTable(connection, { table, definition: uncheckedTable, created: indexes, check: false });
  }
  for (const [number, , fingerprint] of wanted.tables) {
    connection.statement("UPDATE syncline_tables SET fingerprint = ? WHERE number = ?").run(
      fingerprint,
      number,
    );
  }
  const [table, index] = wanted.highest;
  setHighest(connection, { name: "syncline_tables", number: table });
  setHighest(connection, { name: "syncline_indexes", number: index });
}

/** Numbers are never reused, even those of dropped tables. */
function setHighest(
  connection: Connection,
  { name, number }: { readonly name: string; readonly number: number },
): void {
  if (highestOf(connection, name) >= number) return;
  const { changes } = connection.statement("UPDATE sqlite_sequence SET seq = ? WHERE name = ?").run(
    number,
    name,
  );
  if (changes === 0) {
    connection.statement("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(name, number);
  }
}
