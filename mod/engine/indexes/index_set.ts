/** All indexes of one table, and the index entries of its documents. */
import {
  aggregateEntries,
  type AggregateEntry,
  type AggregateIndex,
  aggregateIndex,
  createAggregateSql,
  dropAggregateSql,
  sameAggregateEntry,
} from "../aggregates/aggregate_index.ts";
import {
  createFieldIndexSql,
  dropFieldIndexSql,
  type FieldIndex,
  fieldIndex,
  fieldKeys,
} from "./field_index.ts";
import {
  createSearchIndexSql,
  dropSearchIndexSql,
  sameSearchEntry,
  type SearchEntry,
  searchEntry,
  type SearchIndex,
  searchIndex,
} from "../search/search_index.ts";
import { type StoredFields, valueAt } from "../documents/system_fields.ts";
import type { KeyChange } from "../types.ts";
import {
  createVectorIndexSql,
  dropVectorIndexSql,
  sameVectorEntry,
  type VectorEntry,
  vectorEntry,
  type VectorIndex,
  vectorIndex,
} from "../vectors/vector_index.ts";

export type IndexKind = "fields" | "search" | "vector" | "aggregate";

/** An index in the catalog. `definition` is JSON; equal strings mean equal indexes. */
export interface CatalogIndex {
  readonly number: number;
  readonly name: string;
  readonly kind: IndexKind;
  readonly definition: string;
}

export interface IndexSet {
  readonly fields: readonly FieldIndex[];
  readonly searches: readonly SearchIndex[];
  readonly vectors: readonly VectorIndex[];
  readonly aggregates: readonly AggregateIndex[];
}

export interface IndexEntries {
  readonly keys: readonly string[];
  readonly searches: readonly (SearchEntry | null)[];
  readonly vectors: readonly (VectorEntry | null)[];
  readonly aggregates: readonly AggregateEntry[];
}

/** Returns the indexes of a table from the catalog. `documents` is the SQLite table of its documents. */
export function indexSet(documents: string, catalog: readonly CatalogIndex[]): IndexSet {
  const fields: FieldIndex[] = [];
  const searches: SearchIndex[] = [];
  const vectors: VectorIndex[] = [];
  const aggregates: AggregateIndex[] = [];
  for (const { number, name, kind, definition } of catalog) {
    const parsed: unknown = JSON.parse(definition);
    switch (kind) {
      case "fields":
        fields.push(
          fieldIndex(documents, { name, number, position: fields.length, fields: parsed as string[] }),
        );
        break;
      case "search": {
        const [searchField, filterFields] = parsed as [string, string[]];
        searches.push(searchIndex({ number, name, searchField, filterFields }));
        break;
      }
      case "vector": {
        const [vectorField, dimensions, filterFields] = parsed as [string, number, string[]];
        vectors.push(vectorIndex(number, { name, vectorField, dimensions, filterFields }));
        break;
      }
      case "aggregate": {
        const [by, sum] = parsed as [string[], string[]];
        aggregates.push(aggregateIndex(number, { name, by, sum }));
        break;
      }
      default:
        kind satisfies never;
    }
  }
  return { fields, searches, vectors, aggregates };
}

export function createIndexSql({ kind, number, definition }: CatalogIndex, format?: number): string {
  switch (kind) {
    case "fields":
      return createFieldIndexSql(number);
    case "search":
      return createSearchIndexSql(number, format);
    case "vector":
      return createVectorIndexSql(number);
    case "aggregate":
      return createAggregateSql(number, definition);
    default:
      return kind satisfies never;
  }
}

export function dropIndexSql({ kind, number }: CatalogIndex): string {
  switch (kind) {
    case "fields":
      return dropFieldIndexSql(number);
    case "search":
      return dropSearchIndexSql(number);
    case "vector":
      return dropVectorIndexSql(number);
    case "aggregate":
      return dropAggregateSql(number);
    default:
      return kind satisfies never;
  }
}

/** Cache by index set, which is created once for each table. */
const fieldsOfSets = new WeakMap<IndexSet, ReadonlySet<string> | null>();

/** Returns the fields that determine the index entries; `null` if the set has search or vector indexes. */
export function indexedFields(set: IndexSet): ReadonlySet<string> | null {
  let fields = fieldsOfSets.get(set);
  if (fields === undefined) {
    const { fields: indexes, searches, vectors, aggregates } = set;
    const paths = [
      ...indexes.flatMap(({ paths }) => paths),
      ...aggregates.flatMap(({ paths, sumPaths }) => [...paths, ...sumPaths]),
    ];
    const roots = paths.map(([root = ""]) => root);
    fields = searches.length + vectors.length > 0 ? null : new Set(["_id", "_creationTime", ...roots]);
    fieldsOfSets.set(set, fields);
  }
  return fields;
}

const none: readonly never[] = [];

/** Returns the index entries of a document. Throws an `EngineError` for a value that an index cannot store. */
export function indexEntries(
  { fields, searches, vectors, aggregates }: IndexSet,
  doc: StoredFields,
): IndexEntries {
  return {
    keys: fieldKeys(fields, doc),
    searches: searches.length === 0 ? none : searches.map((index) => searchEntry(index, doc)),
    vectors: vectors.length === 0 ? none : vectors.map((index) => vectorEntry(index, doc)),
    aggregates: aggregates.length === 0 ? none : aggregateEntries(aggregates, doc),
  };
}

/** Returns whether two states certainly have equal entries. `false` if the set has search or vector indexes. */
export function sameIndexed(
  { fields, searches, vectors, aggregates }: IndexSet,
  a: StoredFields,
  b: StoredFields,
): boolean {
  if (searches.length > 0 || vectors.length > 0) return false;
  for (const { paths } of fields) {
    for (const path of paths) if (valueAt(a, path) !== valueAt(b, path)) return false;
  }
  for (const { paths, sumPaths } of aggregates) {
    for (const path of paths) if (valueAt(a, path) !== valueAt(b, path)) return false;
    for (const path of sumPaths) if (valueAt(a, path) !== valueAt(b, path)) return false;
  }
  return true;
}

/** A document's entries in two states; `null` if it does not exist. */
export interface EntryStates {
  readonly before: IndexEntries | null;
  readonly after: IndexEntries | null;
}

/**
 * Appends the key changes of a document: one for each field index, and one for each other index whose entry
 * changed. Uses `push`: with spreads or `map`, V8 would deoptimize this code repeatedly, because the array prototype is
 * frozen.
 */
export function addKeyChanges(
  changes: KeyChange[],
  { indexes, before, after }: EntryStates & { readonly indexes: IndexSet },
): void {
  const { fields, searches, vectors, aggregates } = indexes;
  for (let at = 0; at < fields.length; at++) {
    const space = fields[at]?.space ?? "";
    changes.push([space, before?.keys[at] ?? null, after?.keys[at] ?? null]);
  }
  for (let at = 0; at < searches.length; at++) {
    const from = before?.searches[at] ?? null;
    const to = after?.searches[at] ?? null;
    if (!sameSearchEntry(from, to)) changes.push(wholeIndex(searches[at]?.space ?? "", { from, to }));
  }
  for (let at = 0; at < vectors.length; at++) {
    const from = before?.vectors[at] ?? null;
    const to = after?.vectors[at] ?? null;
    if (!sameVectorEntry(from, to)) changes.push(wholeIndex(vectors[at]?.space ?? "", { from, to }));
  }
  for (let at = 0; at < aggregates.length; at++) {
    const from = before?.aggregates[at] ?? null;
    const to = after?.aggregates[at] ?? null;
    const space = aggregates[at]?.space ?? "";
    if (!sameAggregateEntry(from, to)) changes.push([space, from?.key ?? null, to?.key ?? null]);
  }
}

/** Reads depend on a search or vector index as a whole, so it has a single, empty key. */
function wholeIndex(space: string, entry: { readonly from: unknown; readonly to: unknown }): KeyChange {
  return [space, entry.from === null ? null : "", entry.to === null ? null : ""];
}
