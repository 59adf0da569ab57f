/** Iterates over the documents that match a search, by relevance. */
import { engineLimits } from "../limits.ts";
import { functionLimits } from "../../limits.ts";
import type { ScanOwner } from "../indexes/scan.ts";
import { matchingRows } from "./matching_rows.ts";
import { passes, prepareSearch, type SearchIndex } from "./search_index.ts";
import type { StoredFields } from "../documents/stored_fields.ts";
import type { Table } from "../table.ts";
import type { Doc } from "../types.ts";
import type { SearchOptions } from "../read_options.ts";

const { parse } = JSON;
const GROWTH = 8;

/** A run that searches. `beforeSearch` writes pending changes to the index. */
export interface SearchOwner extends ScanOwner {
  beforeSearch(): void;
}

/**
 * Yields each matching document once, even if the run writes during the search. Throws an `EngineError` for invalid
 * filters.
 */
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
        if (!passes(filters, doc)) continue;
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
