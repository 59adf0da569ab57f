/** One live query in a component. */
import { useSyncExternalStore } from "react";
import type { FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import type { QueryArgs } from "../bindings/types.ts";
import { nothing, useQueryStore, valueOf } from "./use_query_store.ts";

/**
 * Returns the query's live result and re-renders only when it changes. `undefined` while it loads and for `"skip"`. Arguments
 * are compared by value, so inline objects are fine. Throws the query's `FunctionError` for the nearest error boundary.
 *
 * @example
 * ```tsx
 * const messages = useQuery(api.messages.list, channel === null ? "skip" : { channel });
 * ```
 */
export function useQuery<Name extends FunctionName<"query">>(
  query: Name,
  ...[args]: QueryArgs<Name>
): ResultOf<Name> | undefined {
  const store = useQueryStore(query, args);
  const outcome = useSyncExternalStore(store.subscribe, store.read, nothing);
  return valueOf(outcome) as ResultOf<Name> | undefined;
}
