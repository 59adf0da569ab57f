/** Query results included in a server-rendered page, live once the page's own subscription has a result. */
import { useMemo, useSyncExternalStore } from "react";
import { functionPath, functionReference } from "../../protocol/function_reference.ts";
import type { CallArgs, FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import type { SynclineHttpClient } from "../http/http_client.ts";
import { shareStructure } from "../queries/share_structure.ts";
import { type Outcome, type Store, useQueryStore, valueOf } from "./query_store.ts";

/** A query and its result: plain JSON to pass from the server to the page. */
export interface Preloaded<Name> {
  readonly path: string;
  readonly args: Record<string, unknown>;
  readonly value: ResultOf<Name>;
}

/**
 * Runs a query on the server that renders the page. Rejects with `FunctionError` if it fails.
 *
 * @example
 * ```tsx
 * const list = await preloadQuery(new SynclineHttpClient(server), api.messages.list, { channel });
 * const html = renderToString(<SynclineProvider client={null}><Messages list={list} /></SynclineProvider>);
 * // In Messages: const messages = usePreloadedQuery(list);
 * ```
 */
export async function preloadQuery<Name extends FunctionName<"query">>(
  client: SynclineHttpClient,
  query: Name,
  ...given: CallArgs<Name>
): Promise<Preloaded<Name>> {
  const path = functionPath(query);
  const args: Record<string, unknown> = given[0] ?? {};
  const value = await client.query(functionReference<"query", Record<string, unknown>, unknown>(path), args);
  return { path, args, value: value as ResultOf<Name> };
}

/**
 * Returns the result of a preloaded query: first the preloaded value, on the server and during hydration, then the live result.
 * Does not re-render if both are equal. Throws the query's `FunctionError`.
 */
export function usePreloadedQuery<Name extends FunctionName<"query">>(
  preloaded: Preloaded<Name>,
): ResultOf<Name> {
  const live = useQueryStore(preloaded.path, preloaded.args);
  const first: unknown = preloaded.value;
  const store = useMemo(() => beginWith(first, live), [live]);
  return valueOf(useSyncExternalStore(store.subscribe, store.read, () => first)) as ResultOf<Name>;
}

/** A store with an initial value until it has its own; equal parts remain the same objects. */
function beginWith(first: unknown, live: Store<Outcome>): Store<Outcome> {
  let seen: Outcome;
  let shown: Outcome = first;
  const read = () => {
    const now = live.read();
    if (now !== undefined && !Object.is(now, seen)) {
      shown = shown instanceof Error || now instanceof Error ? now : shareStructure(shown, now);
      seen = now;
    }
    return shown;
  };
  return { subscribe: live.subscribe, read };
}
