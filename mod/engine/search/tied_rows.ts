/** Orders results with equal scores by creation time, then id. Row ids differ between copies of a database. */
import type { Connection } from "../connection.ts";
import type { Table } from "../table.ts";

export interface ScoredRow {
  readonly rid: number;
  readonly score: number;
}

/** Returns the row ids of rows sorted by score, with equal scores sorted by creation time and id. */
export function inCreationOrder(
  connection: Connection,
  table: Table,
  scored: readonly ScoredRow[],
): number[] {
  const rids: number[] = [];
  for (let start = 0; start < scored.length;) {
    let end = start + 1;
    while (end < scored.length && scored[end]?.score === scored[start]?.score) end++;
    const tied = scored.slice(start, end).map(({ rid }) => rid);
    if (tied.length === 1) rids.push(...tied);
    else for (const rid of sorted(connection, table, tied)) rids.push(rid);
    start = end;
  }
  return rids;
}

function sorted(connection: Connection, table: Table, rids: readonly number[]): number[] {
  return connection.statement(table.sql.inCreationOrder).all(JSON.stringify(rids))
    .map(([rid]) => rid as number);
}
