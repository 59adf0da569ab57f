/** Reads aggregates: totals of a key range, and the key at a position, in logarithmic time. */
import type { Connection, Row } from "../connection.ts";
import type { KeyRange } from "../indexes/keys.ts";
import { END_OF_KEYS } from "../types.ts";
import { type AggregateIndex, LEVELS } from "./aggregate_index.ts";

/**
 * Totals of a range. `min` and `max` of a field are `null` if no document has a number in it. `sum` is then 0, and not finite if
 * it exceeds the range of numbers.
 */
export interface Totals {
  count: number;
  readonly fields: { sum: number; min: number | null; max: number | null }[];
}

/** Returns the totals of the entries in a range. */
export function totalsOfRange(connection: Connection, index: AggregateIndex, { lo, hi }: KeyRange): Totals {
  const totals: Totals = { count: 0, fields: index.sum.map(() => ({ sum: 0, min: null, max: null })) };
  if (lo < hi) addRange(connection, index, { level: LEVELS, lo, hi, totals });
  return totals;
}

/** Adds a range: the nodes of a level inside of it, and what is left at its ends from the level below. */
function addRange(
  connection: Connection,
  index: AggregateIndex,
  range: KeyRange & { readonly level: number; readonly totals: Totals },
): void {
  const { level, lo, hi, totals } = range;
  const { sql } = index;
  if (lo >= hi) return;
  if (level === 0) return add(totals, connection.statement(sql.entryTotals).get(lo, hi));
  const below = level - 1;
  const first = connection.statement(sql.nodeFrom).get(level, lo)?.[0] as string | undefined;
  const last = connection.statement(sql.nodeUntil).get(level, hi)?.[0] as string | undefined;
  if (first === undefined || last === undefined || first >= last) {
    return addRange(connection, index, { level: below, lo, hi, totals });
  }
  addRange(connection, index, { level: below, lo, hi: first, totals });
  add(totals, connection.statement(sql.nodeTotals).get(level, first, last));
  addRange(connection, index, { level: below, lo: last, hi, totals });
}

function add(totals: Totals, row: Row = []): void {
  const values = row as (number | null)[];
  totals.count += values[0] ?? 0;
  totals.fields.forEach((field, at) => {
    const [sum, min, max] = values.slice(1 + 3 * at);
    // SQLite returns NULL without numbers, and also for NaN.
    field.sum += sum ?? (typeof min === "number" ? NaN : 0);
    if (typeof min === "number" && (field.min === null || min < field.min)) field.min = min;
    if (typeof max === "number" && (field.max === null || max > field.max)) field.max = max;
  });
}

/** Returns the key at a position of a range, from 0; `null` behind its end. */
export function keyAt(
  connection: Connection,
  index: AggregateIndex,
  { range: { lo, hi }, position }: { readonly range: KeyRange; readonly position: number },
): string | null {
  const { sql } = index;
  let left = totalsOfRange(connection, index, { lo: "", hi: lo }).count + position;
  let [from, to] = ["", END_OF_KEYS];
  for (let level = LEVELS; level > 0; level--) {
    const nodes = connection.statement(sql.nodes).all(level, from, to) as [string, number][];
    for (const [at, [key, count]] of nodes.entries()) {
      from = key;
      if (left < count) {
        to = nodes[at + 1]?.[0] ?? to;
        break;
      }
      if (at === nodes.length - 1) return null;
      left -= count;
    }
  }
  const key = connection.statement(sql.at).get(from, to, left)?.[0] as string | undefined;
  return key === undefined || key >= hi ? null : key;
}
