/**
 * Full-text indexes on FTS5. The SQLite table holds the words only, not the text: a column of the text and one of
 * tokens that stand for the values of the filter fields, so that FTS5 itself joins words and filters.
 */
import { engineLimits } from "../limits.ts";
import type { Connection } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { valueKey } from "../indexes/keys.ts";
import { type Path, pathOf, type StoredFields, valueAt } from "../documents/stored_fields.ts";
import type { KeySpace, SearchIndexDefinition, Value } from "../types.ts";
import type { SearchOptions } from "../reading.ts";

export interface SearchIndex {
  readonly name: string;
  readonly number: number;
  readonly space: KeySpace;
  readonly searchPath: Path;
  readonly filterFields: readonly string[];
  readonly filterPaths: readonly Path[];
  readonly sql: {
    readonly insert: string;
    readonly remove: string;
    readonly search: string;
    /** How many match, counted up to a bound, without ranking. */
    readonly count: string;
  };
}

/** What an index holds of a document. */
export interface SearchEntry {
  readonly text: string;
  readonly filters: string;
}

/** SQL that makes the SQLite table of an index. Relevance is bm25 of the text alone. */
export function createSearchIndexSql(number: number): string {
  return `CREATE VIRTUAL TABLE s${number} USING fts5(text, filters, content='', contentless_delete=1, tokenize='unicode61');
    INSERT INTO s${number}(s${number}, rank) VALUES ('rank', 'bm25(1.0, 0.0)')`;
}

/** SQL that drops it. */
export function dropSearchIndexSql(number: number): string {
  return `DROP TABLE s${number}`;
}

/** A search index with the number the catalog gave it. */
export function searchIndex(number: number, definition: SearchIndexDefinition): SearchIndex {
  const { name, searchField, filterFields } = definition;
  const table = `s${number}`;
  return {
    name,
    number,
    space: table,
    searchPath: pathOf(searchField),
    filterFields,
    filterPaths: filterFields.map(pathOf),
    sql: {
      insert: `INSERT INTO ${table} (rowid, text, filters) VALUES (?, ?, ?)`,
      remove: `DELETE FROM ${table} WHERE rowid = ?`,
      search: `SELECT rowid FROM ${table} WHERE ${table} MATCH ? ORDER BY rank, rowid LIMIT ?+0`,
      count: `SELECT count(*) FROM (SELECT rowid FROM ${table} WHERE ${table} MATCH ? LIMIT ?+0)`,
    },
  };
}

/** What an index holds of a document; `null` when the document has no text in the search field. */
export function searchEntry(index: SearchIndex, doc: StoredFields): SearchEntry | null {
  const text = valueAt(doc, index.searchPath);
  if (typeof text !== "string") return null;
  const filters = index.filterPaths.map((path, field) => filterToken(field, valueAt(doc, path))).join(" ");
  return { text, filters };
}

/** Whether two entries are the same to the index. */
export function sameSearchEntry(a: SearchEntry | null, b: SearchEntry | null): boolean {
  return a === b || (a !== null && b !== null && a.text === b.text && a.filters === b.filters);
}

/** A filter of a search, checked: the values of a document at `path` must have this key. */
interface Filter {
  readonly path: Path;
  readonly key: string;
}

/** A search, ready to be run. `match` is `null` when the query has no word. */
export interface PreparedSearch {
  readonly match: string | null;
  readonly filters: readonly Filter[];
}

/** Throws an `EngineError` for a filter on a field the index does not have. */
export function prepareSearch(index: SearchIndex, options: SearchOptions): PreparedSearch {
  const words = wordsOf(options.query);
  const tokens: string[] = [];
  const filters: Filter[] = [];
  for (const [field, value] of options.filters) {
    const position = index.filterFields.indexOf(field);
    const path = index.filterPaths[position];
    if (path === undefined) throw unknownFilter(index, field);
    tokens.push(` AND filters : "${filterToken(position, value)}"`);
    filters.push({ path, key: valueKey(value) });
  }
  if (words.length === 0) return { match: null, filters };
  const text = words.map((word) => `"${word}"`).join(" OR ");
  return { match: `text : (${text} *)${tokens.join("")}`, filters };
}

/** Row ids by relevance, at most `limit`. */
export function matchingRows(
  connection: Connection,
  search: { readonly index: SearchIndex; readonly match: string; readonly limit: number },
): number[] {
  return connection.statement(search.index.sql.search).all(search.match, search.limit).map((row) =>
    row[0] as number
  );
}

/** Row ids of all that match, by relevance, ranked once; `null` when there are more than `max`: then nothing is ranked. */
export function allMatchingRows(
  connection: Connection,
  { index, match, max }: { readonly index: SearchIndex; readonly match: string; readonly max: number },
): number[] | null {
  const count = connection.statement(index.sql.count).get(match, max + 1)?.[0] as number;
  return count > max ? null : matchingRows(connection, { index, match, limit: count });
}

/** Whether a document has the values the filters ask for. Tokens are hashes, so this decides. */
export function passes(filters: readonly Filter[], doc: StoredFields): boolean {
  return filters.every(({ path, key }) => valueKey(valueAt(doc, path)) === key);
}

/** The words of a query: what FTS5 takes for words, too. Quotes cannot occur in them. */
function wordsOf(query: string): string[] {
  if (typeof query !== "string") {
    throw new EngineError("bad_search", "Cannot search: the query must be a string");
  }
  return query.split(/[^\p{L}\p{N}\p{M}\p{Co}]+/u).filter((word) => word !== "")
    .slice(0, engineLimits.searchWordsMax)
    .map((word) => word.slice(0, engineLimits.searchWordCharsMax).toWellFormed());
}

function unknownFilter(index: SearchIndex, field: string): EngineError {
  const known = index.filterFields.length === 0 ? "none" : index.filterFields.join(", ");
  return new EngineError(
    "bad_search",
    `Cannot filter by "${field}" in index "${index.name}": its filter fields are ${known}`,
  );
}

/** A word that stands for a value of a filter field: 64 bits of hash, the same for equal values. */
function filterToken(field: number, value: Value | undefined): string {
  const key = valueKey(value);
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  for (let index = 0; index < key.length; index++) {
    const code = key.charCodeAt(index);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 15);
  }
  return `f${field}x${(a >>> 0).toString(36)}x${(b >>> 0).toString(36)}`;
}
