/** Connects stores to Solid's reactivity. */
import { createEffect, createMemo, createSignal, onCleanup } from "solid-js";
import type { Store } from "../bindings/query_store.ts";

/** Returns the value of a store, which is subscribed to until the owner is disposed of. */
export function useStore<Value>(store: () => Store<Value>): () => Value {
  const current = createMemo(store);
  const [changes, setChanges] = createSignal(0);
  createEffect(() => onCleanup(current().subscribe(() => setChanges((count) => count + 1))));
  return createMemo(() => {
    changes();
    return current().read();
  });
}
