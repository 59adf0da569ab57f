/**
 * Counts the entries of an index range without reading documents. It skips ahead by position and compares only the keys it
 * lands on, which costs half of a count that compares each key.
 */
import type { Connection } from "../connection.ts";
import type { KeyRange } from "./keys.ts";

/** SQL of an index that counts its entries. */
export interface CountSql {
  /** Returns the key behind a number of entries. Parameters: lo, number. */
  readonly skip: string;
  /** Counts a range. Parameters: lo, hi. */
  readonly rest: string;
}

/** First skip; each further one is twice as long. */
const SKIP_FIRST = 128;
/** Longest skip, and so the most entries read behind the range or `max`. The last skip may read its entries twice. */
const SKIP_MAX = 65_536;

/** Returns the SQL for an SQLite table and its key column. */
export function countSql({ entries, key }: { readonly entries: string; readonly key: string }): CountSql {
  return {
    skip: `SELECT ${key} FROM ${entries} WHERE ${key} >= ? ORDER BY ${key} LIMIT 1 OFFSET ?+0`,
    rest: `SELECT count(*) FROM ${entries} WHERE ${key} >= ? AND ${key} < ?`,
  };
}

/** Returns the number of entries in a range, or `max` if there are more. */
export function countRange(
  connection: Connection,
  sql: CountSql,
  { lo, hi, max }: KeyRange & { readonly max: number },
): number {
  if (lo >= hi) return 0;
  let from = lo;
  let count = 0;
  for (let skip = SKIP_FIRST; count < max; skip = Math.min(2 * skip, SKIP_MAX)) {
    const key = connection.statement(sql.skip).get(from, skip)?.[0] as string | undefined;
    if (key === undefined || key >= hi) {
      count += connection.statement(sql.rest).get(from, hi)?.[0] as number;
      break;
    }
    count += skip;
    from = key;
  }
  return Math.min(count, max);
}
