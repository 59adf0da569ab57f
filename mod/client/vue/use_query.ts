/** Live queries and lists in components. */
import { type MaybeRefOrGetter, toValue } from "vue";
import type { ArgsOf, FunctionName, PassedArgs, ResultOf } from "../../protocol/client_function_names.ts";
import type { ListArgs, LiveQueryOptions, PaginatedName, RowOf } from "../bindings/types.ts";
import { type LiveList, liveList, type LiveQuery, liveQuery, type LoadMore } from "../bindings/views.ts";
import { useSyncline } from "./plugin.ts";
import { type RefsOf, refsOf, useStore } from "./use_store.ts";

/**
 * Arguments of a query, or `"skip"` to not run it: a value, a ref, or a function that is called again when its dependencies change;
 * then options.
 */
export type ReactiveArgs<Name> = Record<never, never> extends ArgsOf<Name>
  ? [args?: MaybeRefOrGetter<PassedArgs<Name> | "skip">, options?: LiveQueryOptions<ResultOf<Name>>]
  : [args: MaybeRefOrGetter<PassedArgs<Name> | "skip">, options?: LiveQueryOptions<ResultOf<Name>>];

/** The list as refs, and a function to load more. */
export interface PaginatedRefs<Row> extends RefsOf<LiveList<Row>> {
  readonly loadMore: LoadMore;
}

/**
 * Returns the query's live result until the component is unmounted or the effect scope stops. Arguments are compared by value.
 *
 * @example
 * ```ts
 * const { data: messages, error } = useQuery(api.messages.list, () => channel.value ? { channel: channel.value } : "skip");
 * ```
 */
export function useQuery<Name extends FunctionName<"query">>(
  query: Name,
  ...[args, options]: ReactiveArgs<Name>
): RefsOf<LiveQuery<ResultOf<Name>>> {
  return refsOf(
    liveQuery<ResultOf<Name>>(useSyncline(), useStore, query, () => toValue<unknown>(args), options),
  );
}

/**
 * Returns a list of pages that is live as a whole: its rows are always the first rows of the full list, without gaps or
 * duplicates while rows are added and removed. The query takes `paginationOpts` in addition to its own arguments, see
 * `paginationOpts` of `syncline/server`. Restarts when the arguments change.
 *
 * @example
 * ```ts
 * const { results, status, loadMore } = usePaginatedQuery(api.messages.page, { channel }, { initialNumItems: 50 });
 * ```
 */
export function usePaginatedQuery<Name extends PaginatedName>(
  query: Name,
  args: MaybeRefOrGetter<ListArgs<Name> | "skip">,
  options: { readonly initialNumItems: number },
): PaginatedRefs<RowOf<Name>> {
  const { read, loadMore } = liveList<RowOf<Name>>(
    useSyncline(),
    useStore,
    query,
    () => toValue<unknown>(args),
    options,
  );
  return { ...refsOf(read), loadMore };
}
