/** Iterates over the documents that match a search, by relevance. */
import { functionLimits } from "../../limits.ts";
import type { Connection } from "../connection.ts";
import type { StoredFields } from "../documents/system_fields.ts";
import type { ScanOwner } from "../indexes/scan.ts";
import { engineLimits } from "../limits.ts";
import type { SearchOptions } from "../read_options.ts";
import type { Table } from "../table.ts";
import type { Doc } from "../types.ts";
import { matchesFilters, prepareSearch, type SearchIndex } from "./search_index.ts";

export interface ScoredRow {
  readonly rid: number;
  readonly score: number;
}

/** Returns row ids by score, then creation time and id, because row ids differ between copies. */
export function inCreationOrder(
  connection: Connection,
  table: Table,
  scored: readonly ScoredRow[],
): number[] {
  const rids: number[] = [];
  for (let start = 0; start < scored.length;) {
    let end = start + 1;
    while (end < scored.length && scored[end]?.score === scored[start]?.score) end++;
    const tied = scored.slice(start, end).map(({ rid }) => rid);
    if (tied.length === 1) rids.push(...tied);
    else for (const rid of sorted(connection, table, tied)) rids.push(rid);
    start = end;
  }
  return rids;
}

function sorted(connection: Connection, table: Table, rids: readonly number[]): number[] {
  return connection.statement(table.sql.inCreationOrder).all(JSON.stringify(rids))
    .map(([rid]) => rid as number);
}

/** Returns at most `limit` row ids in order. */
function matchingRows(
  connection: Connection,
  search: {
    readonly table: Table;
    readonly index: SearchIndex;
    readonly match: string;
    readonly limit: number;
  },
): number[] {
  const { table, index, match, limit } = search;
  const best = connection.statement(index.sql.best).all(match, limit)
    .map(([rid, score]) => ({ rid: rid as number, score: score as number }));
  return inCreationOrder(connection, table, best).slice(0, limit);
}

/** Returns all row ids in order with a single ranking; `null`, without ranking, if there are more than `max`. */
export function allMatchingRows(
  connection: Connection,
  { table, index, match, max }: {
    readonly table: Table;
    readonly index: SearchIndex;
    readonly match: string;
    readonly max: number;
  },
): number[] | null {
  const count = connection.statement(index.sql.count).get(match, max + 1)?.[0] as number;
  return count > max ? null : matchingRows(connection, { table, index, match, limit: count });
}

const { parse } = JSON;
const GROWTH = 8;

/** A run that searches. `beforeSearch` writes pending changes to the index. */
export interface SearchOwner extends ScanOwner {
  beforeSearch(): void;
}

/** Yields each match once, even if the run writes meanwhile. Throws an `EngineError` for invalid filters. */
export function searchDocuments(
  owner: SearchOwner,
  request: { readonly table: Table; readonly index: SearchIndex; readonly options: SearchOptions },
): IterableIterator<Doc> {
  const { table, index, options } = request;
  const { match, filters } = prepareSearch(index, options);

  function* found(): Generator<Doc, void> {
    owner.check();
    owner.recorder?.point(index.space, "");
    if (match === null) return;
    const seen = new Set<number>();
    for (let limit = engineLimits.searchRowsFirst;; limit *= GROWTH) {
      owner.beforeSearch();
      const rids = matchingRows(owner.connection, { table, index, match, limit });
      for (const rid of rids) {
        if (seen.has(rid)) continue;
        seen.add(rid);
        owner.check();
        const row = owner.connection.statement(table.sql.getRow).get(rid);
        if (row === undefined) continue;
        const [id, text] = row as [string, string];
        const doc = parse(text) as Doc & StoredFields;
        if (!matchesFilters(filters, doc)) continue;
        owner.recorder?.point(table.space, id);
        owner.noteDelivered(table, { key: id, rid, text });
        yield doc;
      }
      // A call may read no more documents than this.
      if (rids.length < limit || limit > functionLimits.documentsReadMax) return;
      owner.check();
    }
  }
  return found();
}
