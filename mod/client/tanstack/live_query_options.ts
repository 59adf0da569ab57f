/** Options for TanStack Query whose cached result follows a live query. */
import type { FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import {
  functionPath,
  type FunctionReference,
  functionReference,
} from "../../protocol/function_reference.ts";
import type { QueryArgs } from "../bindings/types.ts";
import type { SynclineClient } from "../client.ts";

/** A query in the cache: the part of TanStack's `Query` that is used. */
export interface LiveCacheEntry {
  setState(state: { status: "error"; error: Error }): void;
}

/** The part of TanStack's `QueryClient` that is used. */
export interface LiveCache {
  setQueryData(queryKey: readonly unknown[], data: unknown): unknown;
  getQueryCache(): {
    find(filters: { queryKey: readonly unknown[] }): LiveCacheEntry | undefined;
    subscribe(listener: (event: { readonly type: string; readonly query: unknown }) => void): () => void;
  };
}

/** Options for `useQuery`, `createQuery`, `queryClient.fetchQuery` and others of TanStack Query. */
export interface LiveQueryOptions<Result> {
  readonly queryKey: readonly unknown[];
  readonly queryFn: (context: { readonly client: LiveCache }) => Promise<Result>;
  /** `false` for `"skip"`. */
  readonly enabled: boolean;
  /** The result is always the newest one. */
  readonly staleTime: number;
  /** A failed query recovers by itself. */
  readonly retry: boolean;
  /** The client waits for the network itself. */
  readonly networkMode: "always";
}

/** Ends the subscriptions of cached queries. */
const ends = new WeakMap<LiveCacheEntry, () => void>();

/**
 * Returns options for a live query. It is live while it is in the cache: until `gcTime` after its last component is unmounted.
 * Without a `window`, such as during server rendering, it is fetched once.
 *
 * @example
 * ```ts
 * const { data } = useQuery(liveQueryOptions(client, api.messages.list, { channel }));
 * ```
 */
export function liveQueryOptions<Name extends FunctionName<"query">>(
  client: SynclineClient,
  query: Name,
  ...[args]: QueryArgs<Name>
): LiveQueryOptions<ResultOf<Name>> {
  const path = functionPath(query);
  const reference = functionReference<"query", Record<string, unknown>, ResultOf<Name>>(path);
  const given: unknown = args ?? {};
  const queryKey = ["syncline", path, given];
  return {
    queryKey,
    queryFn: ({ client: cache }) => follow(client, cache, { queryKey, reference, args: given }),
    enabled: given !== "skip",
    staleTime: Infinity,
    retry: false,
    networkMode: "always",
  };
}

interface Followed<Result> {
  readonly queryKey: readonly unknown[];
  readonly reference: FunctionReference<"query", Record<string, unknown>, Result>;
  readonly args: unknown;
}

/** Subscribes until the query is removed from the cache. Resolves with the first result. A refetch subscribes again. */
function follow<Result>(
  client: SynclineClient,
  cache: LiveCache,
  { queryKey, reference, args }: Followed<Result>,
): Promise<Result> {
  const entry = cache.getQueryCache().find({ queryKey });
  if (entry === undefined || !("window" in globalThis)) return client.query(reference, args as never);
  return new Promise<Result>((resolve, reject) => {
    const unsubscribe = client.subscribe(reference, args as never, (result) => {
      cache.setQueryData(queryKey, result);
      resolve(result as Result);
    }, (error) => {
      entry.setState({ status: "error", error });
      reject(error);
    });
    const unwatch = cache.getQueryCache().subscribe(({ type, query }) => {
      if (type === "removed" && query === entry) end();
    });
    const end = () => {
      unsubscribe();
      unwatch();
    };
    ends.get(entry)?.();
    ends.set(entry, end);
  });
}
