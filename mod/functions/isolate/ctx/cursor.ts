/**
 * Cursors of `paginate`: opaque to clients, and harmless whatever they send. A cursor carries a place in the index and
 * a mark of the query it belongs to; the engine keeps every scan inside the query's own bounds.
 */

import {
  type Bound,
  encodeKey,
  type IndexBounds,
  type SearchOptions,
  type Value,
} from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import { functionLimits } from "../../../limits.ts";

/** A place: behind a row, at the end of all rows, or behind so many results of a search. */
export type Place =
  | { readonly at: "key"; readonly key: string }
  | { readonly at: "end" }
  | { readonly at: "offset"; readonly offset: number };

/** Rows of an index. */
export interface IndexSource {
  readonly from: "index";
  readonly index: string;
  /** The index's fields now: a new version of the app may have other ones under the same name. */
  readonly fields: readonly string[];
  readonly bounds: IndexBounds;
}

/** Results of a search. */
export interface SearchSource {
  readonly from: "search";
  readonly index: string;
  /** The field that is searched in, then the filter fields. */
  readonly fields: readonly string[];
  readonly search: SearchOptions;
}

/** What a query asks for, but for its filters: cursors of one that asks for anything else do not fit. */
export interface Asked {
  readonly table: string;
  readonly source: IndexSource | SearchSource;
  readonly order: "asc" | "desc";
}

/** A query, as its cursors know it. */
export interface CursorOwner {
  /** Stands at the head of each of its cursors. */
  readonly mark: string;
  /** Places in an index are keys, places in a search numbers of results. */
  readonly from: "index" | "search";
}

/** Longest cursor that is looked at: an index key is at most as long as a document. */
const CURSOR_CHARS_MAX = 8 * 1024 * 1024;
/** Characters of index keys and ids. */
const KEY = /^[ -~]+$/;
const OFFSET = /^[1-9]\d{0,8}$/;

/** Cursor for a place in the query with this mark. */
export function encodeCursor(place: Place, mark: string): string {
  switch (place.at) {
    case "key":
      return `${mark}k${place.key}`;
    case "end":
      return `${mark}e`;
    case "offset":
      return `${mark}o${place.offset}`;
    default:
      return place satisfies never;
  }
}

/**
 * The place of a cursor. When it is none, or belongs to another query, throws a `UserError` of code `invalid_cursor`:
 * clients that show pages recognise it and begin again, for example when the query reads other rows after a sign-in.
 */
export function decodeCursor(cursor: unknown, owner: CursorOwner): Place {
  const place = typeof cursor === "string" ? placeOf(cursor, owner) : null;
  if (place !== null) return place;
  throw new UserError(
    "invalid_cursor",
    "The cursor does not belong to this query: start again with cursor: null",
  );
}

function placeOf(cursor: string, { mark, from }: CursorOwner): Place | null {
  if (cursor.length >= CURSOR_CHARS_MAX || !cursor.startsWith(mark)) return null;
  const rest = cursor.slice(mark.length + 1);
  switch (cursor[mark.length]) {
    case "k":
      return from === "index" && KEY.test(rest) ? { at: "key", key: rest } : null;
    case "e":
      return rest === "" ? { at: "end" } : null;
    case "o": {
      // No run gets further: each result is a document read.
      const offset = from === "search" && OFFSET.test(rest) ? Number(rest) : Infinity;
      return offset <= functionLimits.documentsReadMax ? { at: "offset", offset } : null;
    }
    default:
      return null;
  }
}

/** A query's part in its cursors. Throws `TypeError` for conditions with values that have no key. */
export function cursorOwner(asked: Asked): CursorOwner {
  return { mark: markOf(asked), from: asked.source.from };
}

/** A short mark, made of index keys: they tell apart what indexes tell apart, such as `null` and a missing field. */
function markOf({ table, source, order }: Asked): string {
  const text = encodeKey([table, order, source.from, source.index, [...source.fields], conditions(source)]);
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0).toString(36).padStart(7, "0");
}

function conditions(source: IndexSource | SearchSource): Value[] {
  if (source.from === "search") {
    const { query, filters } = source.search;
    return [query, ...filters.map(([field, value]) => [field, encodeKey([value])])];
  }
  const { eq, lower, upper } = source.bounds;
  return [encodeKey(eq), boundKey(lower), boundKey(upper)];
}

function boundKey(bound: Bound | undefined): string | null {
  return bound === undefined ? null : encodeKey([bound.inclusive, bound.value]);
}
