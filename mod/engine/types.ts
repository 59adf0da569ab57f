/** Basic types: values, documents, key spaces, read sets and commit entries. */

/** A JSON value of a document. Numbers are finite; `-0` is stored as `0`. */
export type Value = null | boolean | number | string | Value[] | { [field: string]: Value };

/** A stored document. `_id` and `_creationTime` never change. */
export interface Doc {
  readonly _id: string;
  readonly _creationTime: number;
  [field: string]: Value;
}

/**
 * Ordered ASCII keys: `t<number>` the ids of a table, `i<number>` an index, `s<number>` an aggregate, or a search or vector index
 * (one key, `""`).
 */
export type KeySpace = string;

/** One key, or keys from `lo` (inclusive) to `hi` (exclusive), compared as JavaScript strings. */
export type Interval = readonly [key: string] | readonly [lo: string, hi: string];

export const END_OF_KEYS = "\x7f";

/** Keys that a run read, by key space. A change of a key in one of the intervals may change its result. */
export type ReadSet = Record<KeySpace, Interval[]>;

/** The key of a document before and after a change; `null` if it has none. */
export type KeyChange = readonly [space: KeySpace, before: string | null, after: string | null];

export interface DocumentChange {
  readonly table: string;
  readonly tableNumber: number;
  readonly id: string;
  /** The document's JSON; `null` if deleted. Not sent to main for app tables, which it does not read. */
  readonly doc?: string | null;
  /** Keys in every index, one per key space, changed or not: queries may have read through any. */
  readonly keys: readonly KeyChange[];
  /** Set if no key changed. `keys` is then computed on demand; this is cheaper. */
  readonly unchanged?: UnchangedKeys;
}

export interface UnchangedKeys {
  /** Their key spaces; one list for all documents of a table in a group. */
  readonly spaces: readonly KeySpace[];
  /** Returns the key in a key space, by its position in `spaces`. */
  key(position: number): string;
  /** Characters that this object keeps in memory. */
  readonly chars: number;
}

/** One commit, with everything that subscriptions, caches, the journal and followers need to apply it. */
export interface CommitEntry {
  readonly ts: number;
  /** Wall clock of the commit, ms since the epoch. */
  readonly at: number;
  readonly changes: readonly DocumentChange[];
}

/** An index on field values. Dots separate nested fields (`author.name`). */
export interface IndexDefinition {
  readonly name: string;
  readonly fields: readonly string[];
}

/** A full-text index on one string field. */
export interface SearchIndexDefinition {
  readonly name: string;
  readonly searchField: string;
  readonly filterFields: readonly string[];
}

/** A nearest-neighbour index by cosine similarity on one field of numbers. */
export interface VectorIndexDefinition {
  readonly name: string;
  readonly vectorField: string;
  readonly dimensions: number;
  readonly filterFields: readonly string[];
}

/** Totals of documents, by ranges of field values in order. */
export interface AggregateDefinition {
  readonly name: string;
  readonly by: readonly string[];
  /** Fields whose numbers are summed and compared. */
  readonly sum: readonly string[];
}

export interface TableDefinition {
  readonly indexes: readonly IndexDefinition[];
  readonly searchIndexes: readonly SearchIndexDefinition[];
  readonly vectorIndexes: readonly VectorIndexDefinition[];
  readonly aggregates?: readonly AggregateDefinition[];
  /** Changes whenever `validate` may have, and documents are validated again; without one, at each start. */
  readonly fingerprint?: string;
  /**
   * Validates fields (without `_id` and `_creationTime`) and returns what to store. Throws an `InvalidFieldsError`, or an error
   * of app code, that names the field's path.
   */
  readonly validate: (fields: Record<string, unknown>) => Record<string, Value>;
}

/** All tables by name; those of the service begin with `_`. */
export type SchemaDefinition = ReadonlyMap<string, TableDefinition>;

export interface TableSize {
  readonly table: string;
  readonly documents: number;
  readonly bytes: number;
  readonly indexBytes: number;
}

/** Key of a replay record. `principal` is `null` for anonymous callers. */
export interface RecordKey {
  readonly sessionId: string;
  readonly requestId: number;
  readonly principal: string | null;
}

/** The changes of a schema; indexes are named `table.index`. */
export interface SchemaReport {
  readonly createdTables: readonly string[];
  readonly createdIndexes: readonly string[];
  readonly droppedIndexes: readonly string[];
  readonly unreachableTables: readonly string[];
}
