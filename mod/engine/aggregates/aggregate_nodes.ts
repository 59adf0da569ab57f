/**
 * Keeps the nodes of aggregates up to date. Nodes are computed from the level below: minima follow deletions, and sums have the
 * same rounding in every copy of a database. New entries are added to their nodes instead where the sums have no rounding.
 */
import type { Connection } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { engineLimits } from "../limits.ts";
import { END_OF_KEYS } from "../types.ts";
import { type AggregateEntry, type AggregateIndex, isExact, levelOf, LEVELS } from "./aggregate_index.ts";

/** Keys whose nodes are computed at the end of the group, or before a read: changes of a group share nodes. */
export class PendingNodes {
  readonly #connection: Connection;
  /** By key, the values of a new entry; `null` for other changes. */
  readonly #keys = new Map<AggregateIndex, Map<string, AggregateEntry["values"] | null>>();
  readonly #exact: ExactSums;
  #chars = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#exact = new ExactSums(connection);
  }

  /** Writes an entry, and notes the nodes above it. */
  change(
    index: AggregateIndex,
    change: {
      readonly rid: number;
      readonly before: AggregateEntry | null;
      readonly after: AggregateEntry | null;
    },
  ): void {
    const { rid, before, after } = change;
    const { insert, update, remove } = index.sql;
    if (before === null) {
      if (after !== null) this.#connection.statement(insert).run(after.key, rid, ...after.values);
    } else {
      const { changes } = after === null
        ? this.#connection.statement(remove).run(before.key)
        : this.#connection.statement(update).run(after.key, ...after.values, before.key);
      if (changes !== 1) throw damaged(index);
    }
    if (before !== null) this.#note(index, before.key, null);
    if (after !== null) {
      this.#exact.written(index, after);
      if (after.key !== before?.key) this.#note(index, after.key, before === null ? after.values : null);
    }
    if (this.#chars > engineLimits.aggregateCharsPending) this.write();
  }

  #note(index: AggregateIndex, key: string, added: AggregateEntry["values"] | null): void {
    let keys = this.#keys.get(index);
    if (keys === undefined) this.#keys.set(index, keys = new Map());
    keys.set(key, keys.has(key) ? null : added);
    this.#chars += key.length;
  }

  write(): void {
    for (const [index, noted] of this.#keys) {
      const keys = [...noted.keys()].sort();
      const additions = this.#exact.has(index) ? noted : null;
      for (let level = 1; level <= LEVELS; level++) this.#writeLevel(index, level, { keys, additions });
      this.#exact.advance(index);
    }
    this.#keys.clear();
    this.#chars = 0;
  }

  #writeLevel(index: AggregateIndex, level: number, { keys, additions }: {
    readonly keys: readonly string[];
    readonly additions: ReadonlyMap<string, AggregateEntry["values"] | null> | null;
  }): void {
    const { sql } = index;
    const connection = this.#connection;
    for (const key of keys) {
      if (levelOf(key) < level) continue;
      const exists = connection.statement(sql.hasEntry).get(key) !== undefined;
      connection.statement(exists ? sql.addNode : sql.removeNode).run(level, key);
    }
    for (let at = 0; at < keys.length;) {
      const key = keys[at] ?? "";
      const isNode = levelOf(key) >= level;
      if (isNode) {
        // A new or removed node changes the one before it.
        const before = connection.statement(sql.nodeBefore).get(level, key)?.[0] as string;
        computeNode(connection, index, { level, key: before });
      }
      const end = endOf(connection, index, { level, key });
      const first = at;
      while (at < keys.length && (keys[at] ?? "") < end) at++;
      const totals = isNode ? null : totalsOf(index, keys.slice(first, at), additions);
      if (totals === null || connection.statement(sql.addToNode).run(level, key, ...totals).changes === 0) {
        computeNode(connection, index, { level, key });
      }
    }
  }

  /** Drops pending keys after a rollback. */
  forget(): void {
    this.#keys.clear();
    this.#chars = 0;
    this.#exact.forget();
  }
}

/**
 * Aggregates whose values are all small integers or missing, so that their sums are the same in any order. Each group checks some
 * of the entries that were stored before.
 */
class ExactSums {
  readonly #connection: Connection;
  /** The last checked key; `true` after all entries, `false` if another value was found. */
  #checked = new WeakMap<AggregateIndex, string | boolean>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  has(index: AggregateIndex): boolean {
    return index.sum.length === 0 || this.#checked.get(index) === true;
  }

  written(index: AggregateIndex, { values }: AggregateEntry): void {
    if (!isExact(values)) this.#checked.set(index, false);
  }

  advance(index: AggregateIndex): void {
    const last = this.#checked.get(index) ?? "";
    if (typeof last === "boolean" || index.sum.length === 0) return;
    const { aggregateEntriesChecked } = engineLimits;
    const rows = this.#connection.statement(index.sql.page(">")).all(last, aggregateEntriesChecked);
    const areExact = rows.every(([, , ...values]) => isExact(values as (number | null)[]));
    const next = rows.at(-1)?.[0] as string | undefined;
    this.#checked.set(
      index,
      areExact && (rows.length < aggregateEntriesChecked || next === undefined ? true : next),
    );
  }

  /** After a rollback, entries that were removed are stored again. */
  forget(): void {
    this.#checked = new WeakMap();
  }
}

/** The error for an entry that is missing. Damage must not spread. */
function damaged({ name }: AggregateIndex): EngineError {
  return new EngineError(
    "unusable_database",
    `The database is damaged: aggregate "${name}" and its documents do not agree; restore a backup`,
  );
}

/** Returns the number of new entries, and for each field sum, minimum and maximum; `null` if other changes are among them. */
function totalsOf(
  { sum }: AggregateIndex,
  keys: readonly string[],
  additions: ReadonlyMap<string, AggregateEntry["values"] | null> | null,
): (number | null)[] | null {
  const totals: (number | null)[] = [keys.length, ...sum.flatMap(() => [null, null, null])];
  for (const key of keys) {
    const values = additions?.get(key) ?? null;
    if (values === null) return null;
    for (const [field, value] of values.entries()) {
      const at = 1 + 3 * field;
      if (value === null) continue;
      totals[at] = (totals[at] ?? 0) + value;
      totals[at + 1] = Math.min(totals[at + 1] ?? value, value);
      totals[at + 2] = Math.max(totals[at + 2] ?? value, value);
    }
  }
  return totals;
}

interface Node {
  readonly level: number;
  readonly key: string;
}

/** Returns the key of the next node of the level. */
function endOf(connection: Connection, { sql }: AggregateIndex, { level, key }: Node): string {
  return (connection.statement(sql.nodeAfter).get(level, key)?.[0] ?? END_OF_KEYS) as string;
}

/** Computes the node that a key is in from the level below. */
function computeNode(connection: Connection, { sql }: AggregateIndex, { level, key }: Node): void {
  connection.statement(level === 1 ? sql.computeLowest : sql.computeUpper).run(level, key);
}

/** Adds an entry to a new aggregate. Call {@linkcode computeNodes} after the last one. */
export function addEntry(
  connection: Connection,
  index: AggregateIndex,
  { rid, entry: { key, values } }: { readonly rid: number; readonly entry: AggregateEntry },
): void {
  connection.statement(index.sql.insert).run(key, rid, ...values);
  for (let level = levelOf(key); level > 0; level--) {
    connection.statement(index.sql.addNode).run(level, key);
  }
}

/** Computes all nodes of a new aggregate. */
export function computeNodes(connection: Connection, index: AggregateIndex): void {
  for (const node of allNodes(connection, index)) computeNode(connection, index, node);
}

/** Yields all nodes from the lowest level up. */
function* allNodes(connection: Connection, index: AggregateIndex): Generator<Node> {
  for (let level = 1; level <= LEVELS; level++) {
    for (let key = ""; key !== END_OF_KEYS; key = endOf(connection, index, { level, key })) {
      yield { level, key };
    }
  }
}

/** Returns how the nodes differ from the entries; `null` if they do not. */
export function nodesFault(connection: Connection, index: AggregateIndex): string | null {
  for (let than: ">" | ">=" = ">=", last = "";; than = ">") {
    const rows = connection.statement(index.sql.page(than)).all(last, engineLimits.indexEntriesRead);
    for (const [key] of rows as [string][]) {
      last = key;
      for (let level = levelOf(key); level > 0; level--) {
        if (connection.statement(index.sql.node).get(level, key) === undefined) return "a node is missing";
      }
    }
    if (rows.length < engineLimits.indexEntriesRead) break;
  }
  for (const node of allNodes(connection, index)) {
    const stored = connection.statement(index.sql.node).get(node.level, node.key);
    if (stored === undefined) return "a first node is missing";
    const end = endOf(connection, index, node);
    const totals = node.level === 1
      ? connection.statement(index.sql.entryTotals).get(node.key, end)
      : connection.statement(index.sql.nodeTotals).get(node.level - 1, node.key, end);
    if (stored.some((value, at) => value !== totals?.[at])) {
      return "the totals of a node do not match its entries";
    }
  }
  return null;
}
