/** Live queries and lists as objects, for frameworks that track which values a component reads. */
import { type FunctionName, functionPath } from "../../protocol/function_reference.ts";
import type { ConnectionState, SynclineClient } from "../client.ts";
import { idleList, type ListView, PageList, type PageStatus } from "./page_list.ts";
import { followArgs, idleStore, queryStore, type Store } from "./query_store.ts";
import {
  accountsOf,
  authStore,
  type AuthView,
  connectionStore,
  pageClient,
  signedInView,
} from "./state_stores.ts";
import type { LiveQueryOptions } from "./types.ts";

/**
 * Connects a store to a framework: returns a tracked function that returns its value. `store` returns another store when
 * tracked values change; only the latest one is subscribed to, until the component or the scope ends.
 */
export type Connect = <Value>(store: () => Store<Value>) => () => Value;

/** A live query. */
export interface LiveQuery<Result> {
  /** The result; `undefined` while it loads, for `"skip"`, and after an error. Read-only. */
  readonly data: Result | undefined;
  /** The query's `FunctionError`; `null` if it did not fail. */
  readonly error: Error | null;
  /** Whether there is neither a result nor an error yet. `false` for `"skip"`. */
  readonly isLoading: boolean;
}

/** A live list of pages. */
export interface LiveList<Row> {
  /** The rows loaded so far; read-only. */
  readonly results: readonly Row[];
  readonly status: PageStatus;
  /** Whether a page loads. `false` for `"skip"`. */
  readonly isLoading: boolean;
  /** The query's `FunctionError`; `null` if no page failed. */
  readonly error: Error | null;
}

/** Loads the next page; default size: that of the first page. Ignored unless the status is `CanLoadMore`. */
export type LoadMore = (numItems?: number) => void;

/** A live list of pages, and a function to load more. */
export interface PaginatedQuery<Row> extends LiveList<Row> {
  readonly loadMore: LoadMore;
}

/** Returns the current view as one object, whose properties are tracked where they are read. */
export function gettersOf<View extends object>(view: () => View): View {
  const getters = {} as View;
  for (const key in view()) Object.defineProperty(getters, key, { enumerable: true, get: () => view()[key] });
  return getters;
}

/** Returns a tracked function that returns a query. `args` are arguments, `"skip"`, or a function that returns them. */
export function liveQuery<Result>(
  client: SynclineClient,
  connect: Connect,
  query: FunctionName,
  args: unknown,
  { initial }: LiveQueryOptions<Result> = {},
): () => LiveQuery<Result> {
  const path = functionPath(query);
  let first: Store<unknown> | undefined;
  const store = followArgs(args, idleStore, (args) => {
    const made = queryStore(client, path, args);
    first ??= made;
    return made;
  });
  const read = connect(store);
  return () => {
    const live = read();
    // Later than live results, which the client forgets while nothing reads the query, it would be outdated.
    if (live !== undefined) initial = undefined;
    const outcome = live === undefined && store() === first ? initial : live;
    return outcome instanceof Error
      ? { data: undefined, error: outcome, isLoading: false }
      : { data: outcome as Result, error: null, isLoading: outcome === undefined && store() !== idleStore };
  };
}

/** Returns a tracked function that returns a list. `args` are the query's own arguments, see {@linkcode liveQuery}. */
export function liveList<Row>(
  client: SynclineClient,
  connect: Connect,
  query: FunctionName,
  args: unknown,
  { initialNumItems }: { readonly initialNumItems: number },
): { readonly read: () => LiveList<Row>; readonly loadMore: LoadMore } {
  const path = functionPath(query);
  const list = followArgs<Pick<PageList, "subscribe" | "read" | "loadMore">>(
    args,
    idleList,
    (args) => new PageList(client, path, args, initialNumItems),
  );
  const read = connect(list);
  return {
    read: () => {
      const view = read() as ListView & { readonly results: readonly Row[] };
      return { ...view, isLoading: view.status.startsWith("Loading") && list() !== idleList };
    },
    loadMore: (numItems) => list().loadMore(numItems),
  };
}

/** Returns the authentication state with tracked properties. */
export function authView(owner: SynclineClient, connect: Connect): AuthView {
  const client = pageClient(owner);
  const store = authStore(client);
  const state = connect(() => store);
  const auth = accountsOf(client);
  return gettersOf(() => ({ ...signedInView(state()), auth }));
}

/** Returns the connection state with tracked properties. */
export function connectionView(client: SynclineClient, connect: Connect): ConnectionState {
  const store = connectionStore(client);
  return gettersOf(connect(() => store));
}
