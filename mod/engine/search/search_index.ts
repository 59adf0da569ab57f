/**
 * Full-text indexes on FTS5. The SQLite table stores only words: a column for the text, and one of tokens for the
 * values of the filter fields, so that FTS5 combines both.
 *
 * Results are ordered by score, then creation time, then id. Scores depend on the documents alone, so every copy of a
 * database returns the same order.
 */
import { engineLimits } from "../limits.ts";
import { FORMAT_VERSION } from "../connection.ts";
import { EngineError } from "../errors.ts";
import { valueKey } from "../indexes/keys.ts";
import { type Path, pathOf, type StoredFields, valueAt } from "../documents/system_fields.ts";
import type { KeySpace, SearchIndexDefinition, Value } from "../types.ts";
import type { SearchOptions } from "../read_options.ts";

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
    /** Returns the given number of best row ids with their scores, and all others with the last score. */
    readonly best: string;
    /** Counts matches up to a limit, without ranking. */
    readonly count: string;
  };
}

export interface SearchEntry {
  readonly text: string;
  readonly filters: string;
}

/**
 * SQL that creates the SQLite table of an index. The score is bm25 of the text. Tables of format 1 use
 * `contentless_delete`, which keeps counting deleted rows in the number of rows and the average length, so their scores
 * depend on earlier writes.
 */
export function createSearchIndexSql(number: number, format: number = FORMAT_VERSION): string {
  const options = format === 1 ? "content='', contentless_delete=1" : "content=''";
  return `CREATE VIRTUAL TABLE s${number} USING fts5(text, filters, ${options}, tokenize='unicode61');
    INSERT INTO s${number}(s${number}, rank) VALUES ('rank', 'bm25(1.0, 0.0)')`;
}

export function dropSearchIndexSql(number: number): string {
  return `DROP TABLE s${number}`;
}

export function searchIndex(
  { number, name, searchField, filterFields }: SearchIndexDefinition & { readonly number: number },
): SearchIndex {
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
      remove: `INSERT INTO ${table} (${table}, rowid, text, filters) VALUES ('delete', ?, ?, ?)`,
      best: `WITH found AS MATERIALIZED
        (SELECT rowid AS rid, rank AS score FROM ${table} WHERE ${table} MATCH ?1)
        SELECT rid, score FROM found WHERE score <=
          coalesce((SELECT score FROM found ORDER BY score LIMIT 1 OFFSET ?2 - 1), 9e999)
        ORDER BY score`,
      count: `SELECT count(*) FROM (SELECT rowid FROM ${table} WHERE ${table} MATCH ? LIMIT ?+0)`,
    },
  };
}

/** Returns a document's entry; `null` if it has no string in the search field. */
export function searchEntry(index: SearchIndex, doc: StoredFields): SearchEntry | null {
  const text = valueAt(doc, index.searchPath);
  if (typeof text !== "string") return null;
  const filters = index.filterPaths.map((path, field) => filterToken(field, valueAt(doc, path))).join(" ");
  return { text, filters };
}

export function sameSearchEntry(a: SearchEntry | null, b: SearchEntry | null): boolean {
  return a === b || (a !== null && b !== null && a.text === b.text && a.filters === b.filters);
}

interface Filter {
  readonly path: Path;
  readonly key: string;
}

/** A validated search. `match` is `null` if the query has no words. */
export interface PreparedSearch {
  readonly match: string | null;
  readonly filters: readonly Filter[];
}

/** Throws an `EngineError` for a filter on an unknown field. */
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

/** Returns whether a document passes the filters. Tokens are hashes, so this check decides. */
export function matchesFilters(filters: readonly Filter[], doc: StoredFields): boolean {
  return filters.every(({ path, key }) => valueKey(valueAt(doc, path)) === key);
}

/** Splits a query into words as FTS5 does. Words contain no quotes. */
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

/** Returns the token of a filter value: a hash of 64 bits, equal for equal values. */
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
