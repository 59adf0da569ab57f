/** Cursors of `paginate`, safe with any input: an index position and a hash of the query, whose bounds always hold. */

import {
  type Bound,
  encodeKey,
  type IndexBounds,
  type SearchOptions,
  type Value,
} from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import { functionLimits } from "../../../limits.ts";

/** A position: after a row, after all rows, or after a number of search results. */
export type Place =
  | { readonly at: "key"; readonly key: string }
  | { readonly at: "end" }
  | { readonly at: "offset"; readonly offset: number };

/** Index range of a query. */
export interface IndexSource {
  readonly from: "index";
  readonly index: string;
  /** Current fields of the index. Another version of the app may use other fields under the same name. */
  readonly fields: readonly string[];
  readonly bounds: IndexBounds;
}

export interface SearchSource {
  readonly from: "search";
  readonly index: string;
  readonly fields: readonly string[];
  readonly search: SearchOptions;
}

/** A query without its filters. Cursors are valid for the same query only. */
export interface Asked {
  readonly table: string;
  readonly source: IndexSource | SearchSource;
  readonly order: "asc" | "desc";
}

/** The part of a query that identifies its cursors. */
export interface CursorOwner {
  /** Prefix of its cursors. */
  readonly mark: string;
  /** Positions are keys in an index, and result counts in a search. */
  readonly from: "index" | "search";
}

/** Longest accepted cursor. An index key is at most as long as a document. */
const CURSOR_CHARS_MAX = 8 * 1024 * 1024;
/** Characters of index keys and ids. */
const KEY = /^[ -~]+$/;
const OFFSET = /^[1-9]\d{0,8}$/;

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
 * Decodes a cursor.
 * @throws UserError with code `invalid_cursor` if it is malformed or belongs to another query. Clients then restart the
 * pagination, for example when a sign-in changed the query.
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
      // Each result counts as a document read, so no run gets further.
      const offset = from === "search" && OFFSET.test(rest) ? Number(rest) : Infinity;
      return offset <= functionLimits.documentsReadMax ? { at: "offset", offset } : null;
    }
    default:
      return null;
  }
}

/** Returns the cursor identity of a query. Throws `TypeError` for conditions with values that have no key. */
export function cursorOwner(asked: Asked): CursorOwner {
  return { mark: markOf(asked), from: asked.source.from };
}

/** A short hash of index keys. Distinguishes what indexes distinguish, such as `null` and a missing field. */
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
