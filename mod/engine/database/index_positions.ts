/** Positions in an index: the number of rows in a range, and the key of the row at a position. */
import { rangeOfScan } from "../indexes/bounds.ts";
import type { Tables } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import type { IndexBounds } from "../read_options.ts";
import type { ReadSetRecorder } from "../read_set.ts";
import { BY_ID, documentsTable } from "../table.ts";

export interface IndexRows {
  readonly table: string;
  readonly index: string;
  readonly bounds: IndexBounds;
  readonly order: "asc" | "desc";
  /** Only rows after this key. */
  readonly after?: string;
}

/** Both read keys only, some 100 ms for a million, and add the whole range to the read set. */
export interface IndexPositions {
  countRows(rows: IndexRows, max: number): number;
  /** Returns the key of the row at a position from 0; `null` if there are fewer rows. */
  keyAt(rows: IndexRows, position: number): string | null;
}

export function positionsOf(
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
    return { lo, hi, key, sql: `${entries} WHERE ${key} >= ? AND ${key} < ?` };
  };
  return {
    countRows(rows, max) {
      const { sql, lo, hi } = keysOf(rows);
      if (lo >= hi) return 0;
      const counted = `SELECT count(*) FROM (SELECT 1 FROM ${sql} LIMIT ?+0)`;
      return connection.statement(counted).get(lo, hi, Math.trunc(max))?.[0] as number;
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
