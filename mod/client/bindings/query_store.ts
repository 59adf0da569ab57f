/** Live queries as stores, which each framework's binding connects to its own reactivity. */
import { canonicalJson } from "../../protocol/canonical_json.ts";
import { functionReference } from "../../protocol/function_reference.ts";
import type { SynclineClient } from "../client.ts";

/** A value that changes; the arguments of React's `useSyncExternalStore`. */
export interface Store<Value> {
  /** Calls `listener` after changes. Returns a function that removes it. */
  readonly subscribe: (listener: () => void) => () => void;
  /** Returns the current value; the same object unless it changed. */
  readonly read: () => Value;
}

/** Value of a query: its result, its error (results are JSON and never an `Error`), `undefined` while it loads. */
export type Outcome = unknown;

/** Store of a skipped query. */
export const idleStore: Store<Outcome> = { subscribe: () => () => {}, read: () => undefined };

/**
 * Returns the store of a query; live while it has listeners. Without a client it stays `undefined`. Throws `TypeError` for
 * arguments that are not JSON.
 */
export function queryStore(
  client: SynclineClient | null,
  path: string,
  args: Record<string, unknown>,
): Store<Outcome> {
  const watch = client?.watchQuery(functionReference<"query", Record<string, unknown>, unknown>(path), args);
  const read = () => {
    try {
      return watch?.localResult();
    } catch (error) {
      return error;
    }
  };
  return { subscribe: watch?.onUpdate ?? idleStore.subscribe, read };
}

/**
 * Returns a function that returns the store for the current arguments: the same store while they are equal, `idle` for
 * `"skip"`. `args` are the arguments or a function that returns them. It throws `TypeError` for arguments that are not JSON.
 */
export function followArgs<Followed>(
  args: unknown,
  idle: Followed,
  make: (args: Record<string, unknown>) => Followed,
): () => Followed {
  let key = "";
  let store = idle;
  return () => {
    const given = (typeof args === "function" ? args() : args) ?? {};
    const now = given === "skip" ? "" : canonicalJson(given);
    if (now !== key) {
      key = now;
      // A copy, because reactive objects change.
      store = now === "" ? idle : make(JSON.parse(now));
    }
    return store;
  };
}
