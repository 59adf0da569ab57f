/** A live query that suspends the component while it loads. */
import { use, useMemo, useSyncExternalStore } from "react";
import type { CallArgs, FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import { queryStore, type Store } from "../bindings/query_store.ts";
import type { SynclineClient } from "../client.ts";
import { reactLimits } from "./limits.ts";
import { useSyncline } from "./provider.ts";
import { type ResolvedQuery, useResolvedQuery, valueOf } from "./use_query_store.ts";

/**
 * Queries of suspended components, by client and query. A component that suspends before it is mounted has no state, so the
 * subscription and the promise are kept here. Bounded by the client's limit of live queries.
 */
const arrivals = new WeakMap<SynclineClient, Map<string, Promise<void>>>();

/**
 * Returns the query's live result. Suspends while it loads, so that the nearest `<Suspense>` shows its fallback. Throws the
 * query's `FunctionError`.
 */
export function useSuspenseQuery<Name extends FunctionName<"query">>(
  query: Name,
  ...[args]: CallArgs<Name>
): ResultOf<Name> {
  const client = useSyncline();
  const asked = useResolvedQuery(query, args);
  if (asked === null) throw new TypeError("A query that suspends cannot be skipped");
  const store = useMemo(() => queryStore(client, asked.path, asked.args), [client, asked]);
  const outcome = useSyncExternalStore(store.subscribe, store.read, store.read);
  if (outcome === undefined) use(arrival(client, asked, store));
  return valueOf(outcome) as ResultOf<Name>;
}

/** Fulfilled when the query has a result. Keeps the query live until the component has had time to subscribe. */
function arrival(
  client: SynclineClient,
  { path, argsKey }: ResolvedQuery,
  store: Store<unknown>,
): Promise<void> {
  let pending = arrivals.get(client);
  if (pending === undefined) arrivals.set(client, pending = new Map());
  const key = `${path} ${argsKey}`;
  const known = pending.get(key);
  if (known !== undefined) return known;
  let resolve = () => {};
  const promise = new Promise<void>((onArrival) => resolve = onArrival);
  let arrived = false;
  const end = store.subscribe(() => {
    // Only once: a frequently changing query must not keep itself alive for a component that never returned.
    if (arrived) return;
    arrived = true;
    clearTimeout(timer);
    setTimeout(release, reactLimits.mountMs);
    resolve();
  });
  const release = () => {
    pending.delete(key);
    end();
    resolve();
  };
  const timer = setTimeout(release, reactLimits.suspendedMs);
  pending.set(key, promise);
  return promise;
}
