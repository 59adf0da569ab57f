/** A variable number of live queries in one component. */
import { useMemo, useSyncExternalStore } from "react";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import { functionPath } from "../../protocol/function_reference.ts";
import type { FunctionName, PassedArgs, ResultOf } from "../../protocol/client_function_names.ts";
import { idleStore, type Outcome, queryStore, type Store } from "../bindings/query_store.ts";
import { useClient } from "./provider.ts";

/** Queries by caller-chosen names. */
export type QueriesToAsk<Names extends Record<string, FunctionName<"query">>> = {
  readonly [Key in keyof Names]: {
    readonly query: Names[Key];
    readonly args: PassedArgs<Names[Key]> | "skip";
  };
};

/** Results by name: `undefined` while loading, an error if the query fails. */
export type QueriesResults<Names extends Record<string, FunctionName<"query">>> = {
  readonly [Key in keyof Names]: ResultOf<Names[Key]> | Error | undefined;
};

/**
 * Returns the results of several queries, live and with one timestamp, for a number of queries that is not known in advance.
 * Errors are returned as values, so that one failure does not hide the other results.
 *
 * @example
 * ```tsx
 * const { item, owner } = useQueries({
 *   item: { query: api.items.get, args: { id } },
 *   owner: { query: api.users.get, args: ownerId ? { id: ownerId } : "skip" },
 * });
 * ```
 */
export function useQueries<const Names extends Record<string, FunctionName<"query">>>(
  queries: QueriesToAsk<Names>,
): QueriesResults<Names> {
  const client = useClient();
  const asked = Object.entries<{ query: FunctionName; args: unknown }>(queries)
    .map(([name, { query, args }]) => [name, functionPath(query), args] as const);
  const key = canonicalJson(asked);
  const store = useMemo(() => {
    const stores = asked.map(([name, path, args]) =>
      [
        name,
        args === "skip" ? idleStore : queryStore(client, path, args as Record<string, unknown>),
      ] as const
    );
    return joinStores(stores);
  }, [client, key]);
  return useSyncExternalStore(store.subscribe, store.read, store.first) as QueriesResults<Names>;
}

interface JoinedStore extends Store<unknown> {
  /** The value before any query has a result. */
  readonly first: () => unknown;
}

/** Combines stores. The value is an object that is replaced when a member changes. */
export function joinStores(stores: readonly (readonly [name: string, store: Store<Outcome>])[]): JoinedStore {
  const first: unknown = Object.freeze(Object.fromEntries(stores.map(([name]) => [name, undefined])));
  let last: readonly Outcome[] = stores.map(() => undefined);
  let value = first;
  return {
    subscribe: (listener) => {
      const ends: (() => void)[] = [];
      const endAll = () => ends.forEach((end) => end());
      try {
        for (const [, store] of stores) ends.push(store.subscribe(listener));
      } catch (error) {
        // The client's limit is exceeded: end the previous subscriptions, because React cannot.
        endAll();
        throw error;
      }
      return endAll;
    },
    read: () => {
      const now = stores.map(([, store]) => store.read());
      if (now.every((outcome, i) => Object.is(outcome, last[i]))) return value;
      last = now;
      return value = Object.freeze(Object.fromEntries(stores.map(([name], i) => [name, now[i]])));
    },
    first: () => first,
  };
}
