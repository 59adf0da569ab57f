/**
 * Cursors of `paginate`: opaque to clients, and harmless whatever they send. A cursor carries a place in the index and
 * a mark of the query it belongs to; the engine keeps every scan inside the query's own bounds.
 */

import { UserError } from "../../errors.ts";

/** A place: behind a row, at the end of all rows, or behind so many results of a search. */
export type Place =
  | { readonly at: "key"; readonly key: string }
  | { readonly at: "end" }
  | { readonly at: "offset"; readonly offset: number };

/** Longest cursor that is looked at: an index key is at most as long as a document. */
const CURSOR_CHARS_MAX = 8 * 1024 * 1024;

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
export function decodeCursor(cursor: unknown, mark: string): Place {
  if (typeof cursor === "string" && cursor.length < CURSOR_CHARS_MAX && cursor.startsWith(mark)) {
    const rest = cursor.slice(mark.length + 1);
    switch (cursor[mark.length]) {
      case "k":
        return { at: "key", key: rest };
      case "e":
        return { at: "end" };
      case "o":
        if (/^\d{1,9}$/.test(rest)) return { at: "offset", offset: Number(rest) };
        break;
      default:
    }
  }
  throw new UserError(
    "invalid_cursor",
    "The cursor does not belong to this query: start again with cursor: null",
  );
}

/** A short mark of what a query asks for: cursors of another query do not fit. */
export function queryMark(parts: readonly unknown[]): string {
  let hash = 0x811c9dc5;
  const text = JSON.stringify(parts);
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0).toString(36).padStart(7, "0");
}
