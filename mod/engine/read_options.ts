/** Options and results of reads: bounds, scans and searches. */
import type { Doc, Value } from "./types.ts";

/** One end of a range. `undefined` is a missing field, which sorts first. */
export interface Bound {
  readonly value: Value | undefined;
  readonly inclusive: boolean;
}

/** Equal values, then at most one range on the next field. `_creationTime` follows each index's fields, not `by_id`'s. */
export interface IndexBounds {
  readonly eq: readonly (Value | undefined)[];
  readonly lower?: Bound;
  readonly upper?: Bound;
}

export interface ScanOptions {
  readonly order: "asc" | "desc";
  /** Cursor: starts after this key in scan order. The key may no longer exist. */
  readonly after?: string;
  /** Ends with this key in scan order, inclusive. */
  readonly until?: string;
  /** Number of rows the caller expects; sizes the first read only. */
  readonly expected?: number;
}

export interface TakeOptions {
  readonly order: "asc" | "desc";
  /** Number of documents, from 1 on. `Infinity` for all. */
  readonly count: number;
}

/** A document of a scan with its index key, for cursors. */
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
  /** A document passes if each field has one of its values. */
  readonly filters: readonly (readonly [field: string, values: readonly (Value | undefined)[]])[];
}
