/** A live list loaded page by page. */
import { useMemo, useSyncExternalStore } from "react";
import { idleList, loadingList, PageList, type PageStatus } from "../bindings/page_list.ts";
import type { ListArgs, PaginatedName, RowOf } from "../bindings/types.ts";
import { useClient } from "./provider.ts";
import { named, useResolvedQuery } from "./use_query_store.ts";

/** The list and a function to load more. */
export interface PaginatedQuery<Row> {
  /** The rows loaded so far; read-only. */
  readonly results: readonly Row[];
  readonly status: PageStatus;
  readonly isLoading: boolean;
  /** Loads the next page; default size: that of the first page. The same function in every render. Ignored unless the status is `CanLoadMore`. */
  readonly loadMore: (numItems?: number) => void;
}

/**
 * Returns a list of pages that is live as a whole: its rows are always the first rows of the full list, without gaps or
 * duplicates while rows are added and removed. Large pages are split, so that a change only transfers one small page. The query
 * takes `paginationOpts` in addition to its own arguments, see `paginationOpts` of `syncline/server`. Restarts when the
 * arguments change; `initialNumItems` is used at a start. Throws the query's `FunctionError`.
 *
 * @example
 * ```tsx
 * const { results, status, loadMore } = usePaginatedQuery(api.messages.page, { channel }, { initialNumItems: 50 });
 * ```
 */
export function usePaginatedQuery<Name extends PaginatedName>(
  query: Name,
  args: ListArgs<Name> | "skip",
  { initialNumItems }: { readonly initialNumItems: number },
): PaginatedQuery<RowOf<Name>> {
  const client = useClient();
  const asked = useResolvedQuery(query, args);
  const list = useMemo(
    () => asked === null ? idleList : new PageList(client, asked.path, asked.args, initialNumItems),
    [client, asked],
  );
  const { results, status, error } = useSyncExternalStore(list.subscribe, list.read, () => loadingList);
  if (error !== null) throw named(error);
  return useMemo(() => ({
    results: results as readonly RowOf<Name>[],
    status,
    isLoading: status === "LoadingFirstPage" || status === "LoadingMore",
    loadMore: list.loadMore,
  }), [results, status, list]);
}
