/** Query results included in a server-rendered page, live once the page's own subscription has a result. */
import { useMemo, useSyncExternalStore } from "react";
import type { FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import type { Outcome, Store } from "../bindings/query_store.ts";
import { shareStructure } from "../queries/share_structure.ts";
import type { Preloaded } from "./preload_query.ts";
import { useQueryStore, valueOf } from "./use_query_store.ts";

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
