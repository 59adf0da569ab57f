/**
 * Keeps the nodes of aggregates up to date. Nodes are computed from the level below, never by adding differences: minima
 * follow deletions, and sums have the same rounding in every copy of a database.
 */
import type { Connection } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { engineLimits } from "../limits.ts";
import { END_OF_KEYS } from "../types.ts";
import { type AggregateEntry, type AggregateIndex, levelOf, LEVELS } from "./aggregate_index.ts";

/** Keys whose nodes are computed at the end of the group, or before a read: changes of a group share nodes. */
export class PendingNodes {
  readonly #connection: Connection;
  readonly #keys = new Map<AggregateIndex, Set<string>>();
  #chars = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
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
    if (before !== null) this.#note(index, before.key);
    if (after !== null && after.key !== before?.key) this.#note(index, after.key);
    if (this.#chars > engineLimits.aggregateCharsPending) this.write();
  }

  #note(index: AggregateIndex, key: string): void {
    let keys = this.#keys.get(index);
    if (keys === undefined) this.#keys.set(index, keys = new Set());
    keys.add(key);
    this.#chars += key.length;
  }

  write(): void {
    for (const [index, noted] of this.#keys) {
      const keys = [...noted].sort();
      for (let level = 1; level <= LEVELS; level++) this.#writeLevel(index, level, keys);
    }
    this.forget();
  }

  #writeLevel(index: AggregateIndex, level: number, keys: readonly string[]): void {
    const { sql } = index;
    const connection = this.#connection;
    for (const key of keys) {
      if (levelOf(key) < level) continue;
      const exists = connection.statement(sql.hasEntry).get(key) !== undefined;
      connection.statement(exists ? sql.addNode : sql.removeNode).run(level, key);
    }
    let end = "";
    for (const key of keys) {
      if (levelOf(key) >= level) {
        // A new or removed node changes the one before it.
        const before = connection.statement(sql.nodeBefore).get(level, key)?.[0] as string;
        computeNode(connection, index, { level, key: before });
      }
      if (key >= end) end = computeNode(connection, index, { level, key });
    }
  }

  /** Drops pending keys after a rollback. */
  forget(): void {
    this.#keys.clear();
    this.#chars = 0;
  }
}

/** The error for an entry that is missing. Damage must not spread. */
function damaged({ name }: AggregateIndex): EngineError {
  return new EngineError(
    "unusable_database",
    `The database is damaged: aggregate "${name}" and its documents do not agree; restore a backup`,
  );
}

interface Node {
  readonly level: number;
  readonly key: string;
}

/** Returns the key of the next node of the level. */
function endOf(connection: Connection, { sql }: AggregateIndex, { level, key }: Node): string {
  return (connection.statement(sql.nodeAfter).get(level, key)?.[0] ?? END_OF_KEYS) as string;
}

/** Computes the node that a key is in from the level below. Returns the key of the next node. */
function computeNode(connection: Connection, { sql }: AggregateIndex, { level, key }: Node): string {
  return connection.statement(level === 1 ? sql.computeLowest : sql.computeUpper).get(level, key)
    ?.[0] as string;
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
