/** The engine's nouns: values, documents, key spaces, read sets and commit entries. Types only. */

/** A JSON value as documents hold it. Numbers are finite; `-0` is stored as `0`. */
export type Value = null | boolean | number | string | Value[] | { [field: string]: Value };

/** A stored document. `_id` and `_creationTime` are always there and never change. */
export interface Doc {
  readonly _id: string;
  readonly _creationTime: number;
  [field: string]: Value;
}

/**
 * A key space is a set of ordered ASCII keys that read sets and commit entries speak about:
 * `t<table number>` holds the ids of a table, `i<index number>` the keys of an index,
 * `s<index number>` the single key `""` of a search or vector index.
 */
export type KeySpace = string;

/** One key, or the keys from `lo` (included) to `hi` (excluded), compared as JavaScript strings. */
export type Interval = readonly [key: string] | readonly [lo: string, hi: string];

/** Greater than every key of every key space. */
export const END_OF_KEYS = "\x7f";

/** What a run read, by key space. A later change to a key inside one of the intervals may change its result. */
export type ReadSet = Record<KeySpace, Interval[]>;

/** The key a document had and the key it has now in one key space; `null` where it had or has none. */
export type KeyChange = readonly [space: KeySpace, before: string | null, after: string | null];

/** One document's change in a commit. */
export interface DocumentChange {
  readonly table: string;
  readonly tableNumber: number;
  readonly id: string;
  /**
   * The document's JSON text after the commit, `null` when it was deleted. Left out towards main for tables of the app,
   * whose contents nobody there reads.
   */
  readonly doc?: string | null;
  /**
   * Keys in every index of the table, changed or not: a query that read the document through one must notice. Each key space
   * comes once.
   */
  readonly keys: readonly KeyChange[];
  /** Where every key is as it was, and `keys` are made when somebody asks for them: how to ask for less. */
  readonly unchanged?: UnchangedKeys;
}

/** The keys of a document that a commit has left as they were. */
export interface UnchangedKeys {
  /** The key spaces that they are of; the same list for all documents of a table in a group. */
  readonly spaces: readonly KeySpace[];
  /** The one of a space, by its place among them. */
  key(place: number): string;
  /** Characters that stay in memory for it as long as it does. */
  readonly chars: number;
}

/**
 * One commit: the seam for everything downstream (subscriptions, caches, journal, revocation, followers).
 * It carries all that is needed to apply it elsewhere.
 */
export interface CommitEntry {
  readonly ts: number;
  /** Wall clock of the commit, milliseconds since the epoch. */
  readonly at: number;
  readonly changes: readonly DocumentChange[];
}

/** An index on the values of fields; dots reach into objects (`author.name`). */
export interface IndexDefinition {
  readonly name: string;
  readonly fields: readonly string[];
}

/** A full-text index over one text field. */
export interface SearchIndexDefinition {
  readonly name: string;
  readonly searchField: string;
  readonly filterFields: readonly string[];
}

/** An index over one field of numbers, for nearest neighbours by cosine. */
export interface VectorIndexDefinition {
  readonly name: string;
  readonly vectorField: string;
  readonly dimensions: number;
  readonly filterFields: readonly string[];
}

/** What the engine knows of one table. */
export interface TableDefinition {
  readonly indexes: readonly IndexDefinition[];
  readonly searchIndexes: readonly SearchIndexDefinition[];
  readonly vectorIndexes: readonly VectorIndexDefinition[];
  /**
   * Changes whenever `validate` may have changed. Stored documents are not checked again while it stays the same;
   * without it they are checked at each start.
   */
  readonly fingerprint?: string;
  /**
   * Checks the fields of a document (without `_id` and `_creationTime`) and gives back what is stored.
   * Throws an error whose message names the field's path: an `UnfitFieldsError`, or what code of the app throws.
   */
  readonly validate: (fields: Record<string, unknown>) => Record<string, Value>;
}

/** All tables of the app and of the service (whose names begin with `_`), by name. */
export type SchemaDefinition = ReadonlyMap<string, TableDefinition>;

/** Bytes of the database file that a table takes, and its documents. */
export interface TableSize {
  readonly table: string;
  readonly documents: number;
  /** Of the documents themselves. */
  readonly bytes: number;
  /** Of all its indexes. */
  readonly indexBytes: number;
}

/** Key of a replay record. `principal` is `null` for anonymous. */
export interface RecordKey {
  readonly sessionId: string;
  readonly requestId: number;
  readonly principal: string | null;
}

/** What a schema change did; indexes are named `table.index`. */
export interface SchemaReport {
  readonly createdTables: readonly string[];
  /** Indexes built on tables that were there before. */
  readonly createdIndexes: readonly string[];
  readonly droppedIndexes: readonly string[];
  /** Tables with documents in the database that the schema does not have. */
  readonly unreachableTables: readonly string[];
}
