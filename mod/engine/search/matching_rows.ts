/** The row ids that match a search, by score, then creation time, then id. */
import type { Connection } from "../connection.ts";
import type { Table } from "../table.ts";
import type { SearchIndex } from "./search_index.ts";
import { inCreationOrder } from "./tied_rows.ts";

/** Returns at most `limit` row ids in order. */
export function matchingRows(
  connection: Connection,
  search: {
    readonly table: Table;
    readonly index: SearchIndex;
    readonly match: string;
    readonly limit: number;
  },
): number[] {
  const { table, index, match, limit } = search;
  const best = connection.statement(index.sql.best).all(match, limit)
    .map(([rid, score]) => ({ rid: rid as number, score: score as number }));
  return inCreationOrder(connection, table, best).slice(0, limit);
}

/** Returns all row ids in order with a single ranking; `null`, without ranking, if there are more than `max`. */
export function allMatchingRows(
  connection: Connection,
  { table, index, match, max }: {
    readonly table: Table;
    readonly index: SearchIndex;
    readonly match: string;
    readonly max: number;
  },
): number[] | null {
  const count = connection.statement(index.sql.count).get(match, max + 1)?.[0] as number;
  return count > max ? null : matchingRows(connection, { table, index, match, limit: count });
}
