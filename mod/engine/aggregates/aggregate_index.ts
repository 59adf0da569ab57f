/**
 * Declared aggregates: an ordered table of entries with the summed values, and a tree of nodes above it. A node has the
 * totals of the entries from its own key to that of the next node of its level. The ids of documents decide which keys begin
 * a node, so the same documents always have the same tree, independent of their history.
 */
import { ID_CHARS } from "../documents/ids.ts";
import { type Path, pathOf, type StoredFields, valueAt } from "../documents/system_fields.ts";
import { EngineError } from "../errors.ts";
import { fieldKeys } from "../indexes/field_index.ts";
import { engineLimits } from "../limits.ts";
import { type AggregateDefinition, END_OF_KEYS, type KeySpace } from "../types.ts";

export interface AggregateIndex {
  readonly name: string;
  readonly space: KeySpace;
  /** SQLite tables. */
  readonly entries: string;
  readonly nodes: string;
  readonly paths: readonly Path[];
  /** Fields of bounds, in order. */
  readonly boundFields: readonly string[];
  readonly sum: readonly string[];
  readonly sumPaths: readonly Path[];
  readonly sql: AggregateSql;
}

export interface AggregateEntry {
  readonly key: string;
  /** Values of the summed fields; `null` where a document has no number. */
  readonly values: readonly (number | null)[];
}

/** Statements on entries and nodes. Ranges are `from` (inclusive) and `to` (exclusive). */
interface AggregateSql {
  /** Parameters: key, row id, values. */
  readonly insert: string;
  /** Parameters: new key, values, old key. */
  readonly update: string;
  /** Parameters: key. */
  readonly remove: string;
  readonly hasEntry: string;
  /** Columns: key, row id, values. Parameters: key, number of rows. */
  readonly page: (than: ">" | ">=") => string;
  /** Columns: key. Parameters: from, to, offset. */
  readonly at: string;
  /** Totals of entries. Parameters: from, to. */
  readonly entryTotals: string;
  /** Totals of nodes. Parameters: level, from, to. */
  readonly nodeTotals: string;
  /** Parameters: level, key. */
  readonly addNode: string;
  readonly removeNode: string;
  /** Key of the first node from a key on, or after it, and of the last node up to a key, or before it. */
  readonly nodeFrom: string;
  readonly nodeAfter: string;
  readonly nodeUntil: string;
  readonly nodeBefore: string;
  /** Totals stored in a node. */
  readonly node: string;
  /** Keys and counts of nodes. Parameters: level, from, to. */
  readonly nodes: string;
  /** Compute the node that a key is in from the level below. Parameters: level, key. */
  readonly computeLowest: string;
  readonly computeUpper: string;
  /**
   * Adds new entries to the node that a key is in, unless the node is too large for exact sums. Parameters: level, key, number of
   * entries, and for each field sum, minimum and maximum.
   */
  readonly addToNode: string;
}

/** Levels of nodes above the entries. */
export const LEVELS = 2;
/** One of this many keys, as a power of two, begins a node of the next level. */
const FANOUT_BITS = 6;

/** A sum of this many integers of this size is exact, in any order of its parts. */
const EXACT_COUNT_MAX = 2 ** 20;
const EXACT_INTEGER_MAX = 2 ** 32;

/** Whether sums of such values are exact. */
export function isExact(values: AggregateEntry["values"]): boolean {
  return values.every((value) =>
    value === null || Number.isInteger(value) && Math.abs(value) <= EXACT_INTEGER_MAX
  );
}

/** Returns the highest level on which a key begins a node; 0 for most keys. */
export function levelOf(key: string): number {
  let hash = 0x811c_9dc5;
  for (let at = key.length - ID_CHARS; at < key.length; at++) {
    hash = Math.imul(hash ^ key.charCodeAt(at), 0x0100_0193);
  }
  hash = Math.imul(hash ^ hash >>> 16, 0x85eb_ca6b);
  hash = Math.imul(hash ^ hash >>> 13, 0xc2b2_ae35);
  return Math.min(LEVELS, Math.floor(Math.clz32(hash ^ hash >>> 16) / FANOUT_BITS));
}

/** The number of summed fields of a definition in the catalog. */
function sumsOf(definition: string): number {
  const [, sum] = JSON.parse(definition) as [string[], string[]];
  return sum.length;
}

function columns(count: number, column: (at: number) => string): string {
  return Array.from({ length: count }, (_, at) => `, ${column(at)}`).join("");
}

export function createAggregateSql(number: number, definition: string): string {
  const sums = sumsOf(definition);
  const totals = columns(sums, (at) => `s${at} REAL, n${at} REAL, x${at} REAL`);
  const first = Array.from({ length: LEVELS }, (_, at) => `(${at + 1}, '', 0)`).join(", ");
  return `CREATE TABLE a${number} (key TEXT PRIMARY KEY, rid INTEGER NOT NULL${
    columns(sums, (at) => `v${at} REAL`)
  }) WITHOUT ROWID;
    CREATE TABLE b${number} (level INTEGER NOT NULL, key TEXT NOT NULL, count INTEGER NOT NULL${totals},
      PRIMARY KEY (level, key)) WITHOUT ROWID;
    INSERT INTO b${number} (level, key, count) VALUES ${first}`;
}

export function dropAggregateSql(number: number): string {
  return `DROP TABLE a${number}; DROP TABLE b${number}`;
}

export function aggregateIndex(
  number: number,
  { name, by, sum }: AggregateDefinition,
): AggregateIndex {
  const [entries, nodes] = [`a${number}`, `b${number}`];
  const count = sum.length;
  const node = "WHERE level = ? AND key";
  const entryColumns = `count(*)${columns(count, (at) => `sum(v${at}), min(v${at}), max(v${at})`)}`;
  const entryTotals = `SELECT ${entryColumns} FROM ${entries} WHERE key >= ? AND key < ?`;
  // SQLite stores NaN as NULL, which `sum` leaves out: the sum of such a node must not seem to be in the range of numbers.
  const nodeSum = (at: number) => `sum(iif(s${at} IS NULL AND n${at} IS NOT NULL, 9e999, s${at}))`;
  const nodeColumns = `sum(count)${columns(count, (at) => `${nodeSum(at)}, min(n${at}), max(x${at})`)}`;
  const nodeTotals = `SELECT ${nodeColumns} FROM ${nodes} ${node} >= ? AND key < ?`;
  const assigned = `(count${columns(count, (at) => `s${at}, n${at}, x${at}`)})`;
  const end =
    `ifnull((SELECT key FROM ${nodes} WHERE level = ?1 AND key > ?2 ORDER BY key LIMIT 1), '${END_OF_KEYS}')`;
  const itsNode =
    `WHERE level = ?1 AND key = (SELECT key FROM ${nodes} WHERE level = ?1 AND key <= ?2 ORDER BY key DESC LIMIT 1)`;
  const compute = (totals: string) =>
    `UPDATE ${nodes} SET ${assigned} = (${totals} AND below.key >= ${nodes}.key AND below.key < ${end})
      ${itsNode}`;
  const added = columns(count, (at) => {
    const [sum, min, max] = [4, 5, 6].map((place) => `?${place + 3 * at}`);
    return `s${at} = ifnull(s${at} + ${sum}, ifnull(s${at}, ${sum})), n${at} = ifnull(min(n${at}, ${min}), ifnull(n${at}, ${min})),
      x${at} = ifnull(max(x${at}, ${max}), ifnull(x${at}, ${max}))`;
  });
  return {
    name,
    // Like search and vector indexes: key changes are reported only if the entry changed.
    space: `s${number}`,
    entries,
    nodes,
    paths: by.map(pathOf),
    boundFields: [...by, "_creationTime"],
    sum,
    sumPaths: sum.map(pathOf),
    sql: {
      insert: `INSERT INTO ${entries} VALUES (?, ?${columns(count, () => "?")})`,
      update: `UPDATE ${entries} SET key = ?${columns(count, (at) => `v${at} = ?`)} WHERE key = ?`,
      remove: `DELETE FROM ${entries} WHERE key = ?`,
      hasEntry: `SELECT 1 FROM ${entries} WHERE key = ?`,
      page: (than) =>
        `SELECT key, rid${columns(count, (at) => `v${at}`)} FROM ${entries} WHERE key ${than} ?
          ORDER BY key LIMIT ?+0`,
      at: `SELECT key FROM ${entries} WHERE key >= ? AND key < ? ORDER BY key LIMIT 1 OFFSET ?+0`,
      entryTotals,
      nodeTotals,
      addNode: `INSERT OR IGNORE INTO ${nodes} (level, key, count) VALUES (?, ?, 0)`,
      removeNode: `DELETE FROM ${nodes} ${node} = ?`,
      nodeFrom: `SELECT key FROM ${nodes} ${node} >= ? ORDER BY key LIMIT 1`,
      nodeAfter: `SELECT key FROM ${nodes} ${node} > ? ORDER BY key LIMIT 1`,
      nodeUntil: `SELECT key FROM ${nodes} ${node} <= ? ORDER BY key DESC LIMIT 1`,
      nodeBefore: `SELECT key FROM ${nodes} ${node} < ? ORDER BY key DESC LIMIT 1`,
      node: `SELECT count${columns(count, (at) => `s${at}, n${at}, x${at}`)} FROM ${nodes} ${node} = ?`,
      nodes: `SELECT key, count FROM ${nodes} ${node} >= ? AND key < ? ORDER BY key`,
      computeLowest: compute(`SELECT ${entryColumns} FROM ${entries} AS below WHERE true`),
      addToNode: `UPDATE ${nodes} SET count = count + ?3${added}
        ${itsNode} AND count + ?3 <= ${EXACT_COUNT_MAX}`,
      computeUpper: compute(`SELECT ${nodeColumns} FROM ${nodes} AS below WHERE level = ?1 - 1`),
    },
  };
}

/** Returns a document's entries in the order of the aggregates. Throws an `EngineError` if a key is too long. */
export function aggregateEntries(aggregates: readonly AggregateIndex[], doc: StoredFields): AggregateEntry[] {
  const keys = fieldKeys(aggregates, doc);
  return aggregates.map(({ sumPaths }, at) => ({
    key: keys[at] ?? "",
    values: sumPaths.map((path) => {
      const value = valueAt(doc, path);
      return typeof value === "number" ? value : null;
    }),
  }));
}

export function sameAggregateEntry(a: AggregateEntry | null, b: AggregateEntry | null): boolean {
  if (a === null || b === null) return a === b;
  return a.key === b.key && a.values.every((value, at) => value === b.values[at]);
}

/** Throws for an invalid definition. */
export function checkAggregateDefinition(table: string, { name, by, sum }: AggregateDefinition): void {
  const { aggregateSumsMax } = engineLimits;
  if (sum.length <= aggregateSumsMax && new Set(sum).size === sum.length && new Set(by).size === by.length) {
    return;
  }
  throw new EngineError(
    "bad_schema",
    `Aggregate "${name}" of table "${table}" names a field twice, or sums more than ${aggregateSumsMax} fields`,
  );
}
