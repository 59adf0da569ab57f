/** What reads ask for and are given: bounds of a range, scans, searches. */
import type { Doc, Value } from "./types.ts";

/** One end of a range. `undefined` is a missing field, the lowest of all values. */
export interface Bound {
  readonly value: Value | undefined;
  readonly inclusive: boolean;
}

/**
 * Fixed values for the first fields of an index, then at most one range on the next field. Every index but `by_id`
 * goes on with `_creationTime` behind its own fields; `by_id` has the one field `_id`.
 */
export interface IndexBounds {
  readonly eq: readonly (Value | undefined)[];
  readonly lower?: Bound;
  readonly upper?: Bound;
}

export interface ScanOptions {
  readonly order: "asc" | "desc";
  /** Starts behind this key (in scan order), which may no longer exist: a cursor. */
  readonly after?: string;
  /** Ends with this key (in scan order), included. */
  readonly until?: string;
  /** How many rows the caller means to take: sizes the first read from disk, limits nothing. */
  readonly expected?: number;
}

/** A document met by a scan, with its key in the index: what cursors are made of. */
export interface ScanRow {
  readonly key: string;
  readonly doc: Doc;
}

export interface SearchOptions {
  readonly query: string;
  readonly filters: readonly (readonly [field: string, value: Value | undefined])[];
}

export interface VectorSearchOptions {
  readonly vector: readonly number[];
  readonly limit: number;
  /** A document passes when each named field has one of the values. */
  readonly filters: readonly (readonly [field: string, values: readonly (Value | undefined)[]])[];
}
