/** Inspects a whole database: document counts, sizes and key spaces. */
import type { Tables } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import { rangeOfScan } from "../indexes/bounds.ts";
import { countRange } from "../indexes/range_count.ts";
import type { IndexBounds } from "../read_options.ts";
import type { ReadSetRecorder } from "../read_set.ts";
import { BY_ID, documentsTable } from "../table.ts";
import { END_OF_KEYS, type KeySpace, type TableDefinition, type TableSize } from "../types.ts";

export interface IndexRows {
  readonly table: string;
  readonly index: string;
  readonly bounds: IndexBounds;
  readonly order: "asc" | "desc";
  readonly after?: string;
}

/** Both read keys only, some 100 ms for a million, and add the whole range to the read set. */
export interface IndexPositions {
  countRows(rows: IndexRows, max: number): number;
  /** Returns the key of the row at a position from 0; `null` if there are fewer rows. */
  keyAt(rows: IndexRows, position: number): string | null;
}

/** Positions in an index: the number of rows in a range, and the key of the row at a position. */
function positionsOf(
  { connection, tables, recorder }: {
    readonly connection: Connection;
    readonly tables: Tables;
    readonly recorder: ReadSetRecorder;
  },
): IndexPositions {
  /** Returns SQL to follow `SELECT … FROM` and the key range. */
  const keysOf = ({ table: name, index: indexName, bounds, order, after }: IndexRows) => {
    const table = tables.named(name);
    const index = tables.index(table, indexName);
    const { lo, hi } = rangeOfScan(table, {
      index,
      bounds,
      options: { order, ...(after !== undefined && { after }) },
    });
    recorder.extendRange(recorder.beginRange(index.space), lo, hi);
    const [entries, key] = index.name === BY_ID ? [documentsTable(table.number), "id"] : [index.space, "key"];
    return { lo, hi, key, index, sql: `${entries} WHERE ${key} >= ? AND ${key} < ?` };
  };
  return {
    countRows(rows, max) {
      const { index, lo, hi } = keysOf(rows);
      return countRange(connection, index.countSql, { lo, hi, max: Math.trunc(max) });
    },
    keyAt(rows, position) {
      const { sql, key, lo, hi } = keysOf(rows);
      if (lo >= hi) return null;
      const direction = rows.order === "desc" ? " DESC" : "";
      const found = `SELECT ${key} FROM ${sql} ORDER BY ${key}${direction} LIMIT 1 OFFSET ?+0`;
      return (connection.statement(found).get(lo, hi, Math.trunc(position))?.[0] as string | undefined) ??
        null;
    },
  };
}

export interface KeySpaceOwner {
  readonly table: string;
  /** `by_id` for the documents themselves. */
  readonly index: string;
}

/** Inspects the open snapshot. */
export interface Inspection extends IndexPositions {
  /** Counts a table's documents up to `max`. The read set covers the table. */
  count(table: string, max: number): number;
  /** Reads every page of the file, some 120 ms for 200 MB. Not part of the read set: the result is a moment's. */
  sizes(): TableSize[];
  spaces(): ReadonlyMap<KeySpace, KeySpaceOwner>;
  /** Returns the app's stored tables that the schema lacks. They can be scanned by name. */
  orphaned(): ReadonlyMap<string, TableDefinition>;
}

export interface InspectionSetup {
  readonly connection: Connection;
  readonly tables: Tables;
  readonly recorder: ReadSetRecorder;
}

export function inspectionOf({ connection, tables, recorder }: InspectionSetup): Inspection {
  return {
    count(name, max) {
      const { space, number } = tables.named(name);
      recorder.extendRange(recorder.beginRange(space), "", END_OF_KEYS);
      const sql = `SELECT count(*) FROM (SELECT 1 FROM ${documentsTable(number)} LIMIT ?)`;
      return connection.statement(sql).get(Math.trunc(max))?.[0] as number;
    },
    ...positionsOf({ connection, tables, recorder }),
    sizes: () => sizes(connection, tables),
    spaces() {
      const owners = new Map<KeySpace, KeySpaceOwner>();
      for (const { name: table, space, indexes } of tables.all()) {
        owners.set(space, { table, index: BY_ID });
        const { fields, searches, vectors, aggregates } = indexes;
        for (const index of [...fields, ...searches, ...vectors, ...aggregates]) {
          owners.set(index.space, { table, index: index.name });
        }
      }
      return owners;
    },
    orphaned: () => new Map([...tables.orphaned].map(([name, { definition }]) => [name, definition])),
  };
}

function sizes(connection: Connection, tables: Tables): TableSize[] {
  const pages = new Map<string, { readonly bytes: number; readonly cells: number }>();
  const rows = connection.statement("SELECT name, pgsize, ncell FROM dbstat WHERE aggregate = 1").all();
  for (const [name, bytes, cells] of rows as [string, number, number][]) pages.set(name, { bytes, cells });
  const bytesOf = (name: string) => pages.get(name)?.bytes ?? 0;
  return tables.all().map(({ name, number, indexes }) => {
    const documents = documentsTable(number);
    const ids = `sqlite_autoindex_${documents}_1`;
    const { searches, vectors, fields, aggregates } = indexes;
    const indexBytes = fields.reduce((sum, { space }) => sum + bytesOf(space), bytesOf(ids)) +
      searches.reduce(
        (sum, { space }) => sum + searchTables(space).reduce((all, part) => all + bytesOf(part), 0),
        0,
      ) +
      vectors.reduce((sum, { number }) => sum + bytesOf(`v${number}`) + bytesOf(`w${number}`), 0) +
      aggregates.reduce((sum, { entries, nodes }) => sum + bytesOf(entries) + bytesOf(nodes), 0);
    return { table: name, documents: pages.get(ids)?.cells ?? 0, bytes: bytesOf(documents), indexBytes };
  });
}

/** Returns the SQLite tables of a full-text index. */
function searchTables(search: string): string[] {
  return ["data", "idx", "docsize", "config"].map((part) => `${search}_${part}`);
}
