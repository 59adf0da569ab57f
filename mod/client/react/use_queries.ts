/** Any number of live queries in one component. */
import { useMemo, useSyncExternalStore } from "react";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import { functionPath } from "../../protocol/function_reference.ts";
import type { ArgsOf, FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import { useClient } from "./provider.ts";
import { idleStore, type Outcome, queryStore, type Store } from "./query_store.ts";

/** Queries by names of the caller's choice. */
export type QueriesToAsk<Names extends Record<string, FunctionName<"query">>> = {
  readonly [Key in keyof Names]: {
    readonly query: Names[Key];
    readonly args: ArgsOf<Names[Key]> | "skip";
  };
};

/** Their results: `undefined` while one loads, its error when it fails. */
export type QueriesResults<Names extends Record<string, FunctionName<"query">>> = {
  readonly [Key in keyof Names]: ResultOf<Names[Key]> | Error | undefined;
};

/**
 * The results of several queries, live and of one moment; for queries whose number is not known beforehand. Failures
 * are given as values and not thrown, so that one does not hide the others.
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
        client === null || args === "skip"
          ? idleStore
          : queryStore(client, path, args as Record<string, unknown>),
      ] as const
    );
    return joinStores(stores);
  }, [client, key]);
  return useSyncExternalStore(store.subscribe, store.read, store.first) as QueriesResults<Names>;
}

interface JoinedStore extends Store<unknown> {
  /** The value before any member has one. */
  readonly first: () => unknown;
}

/** One store of many; its value is an object that is replaced when a member changed. */
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
        // One too many for the client: React is given no way to end those before it.
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
