/** Live queries and lists in components. */
import type { FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import type { ListArgs, PaginatedName, RowOf, Tracked, TrackedArgs } from "../bindings/types.ts";
import { gettersOf, liveList, type LiveQuery, liveQuery, type PaginatedQuery } from "../bindings/views.ts";
import { useSyncline } from "./provider.ts";
import { useStore } from "./use_store.ts";

/**
 * Returns the query's live result until the owner is disposed of. Arguments are compared by value; pass a function if they change.
 * Do not destructure the result.
 *
 * @example
 * ```ts
 * const messages = useQuery(api.messages.list, () => channel() === "" ? "skip" : { channel: channel() });
 * ```
 */
export function useQuery<Name extends FunctionName<"query">>(
  query: Name,
  ...[args, options]: TrackedArgs<Name>
): LiveQuery<ResultOf<Name>> {
  return gettersOf(liveQuery<ResultOf<Name>>(useSyncline(), useStore, query, args, options));
}

/**
 * Returns a list of pages that is live as a whole: its rows are always the first rows of the full list, without gaps or
 * duplicates while rows are added and removed. The query takes `paginationOpts` in addition to its own arguments, see
 * `paginationOpts` of `syncline/server`. Restarts when the arguments change.
 *
 * @example
 * ```ts
 * const messages = usePaginatedQuery(api.messages.page, () => ({ channel: channel() }), { initialNumItems: 50 });
 * ```
 */
export function usePaginatedQuery<Name extends PaginatedName>(
  query: Name,
  args: Tracked<ListArgs<Name>>,
  options: { readonly initialNumItems: number },
): PaginatedQuery<RowOf<Name>> {
  const { read, loadMore } = liveList<RowOf<Name>>(useSyncline(), useStore, query, args, options);
  return Object.assign(gettersOf(read), { loadMore });
}
