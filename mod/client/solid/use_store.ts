/** Connects stores to Solid's reactivity. */
import { createEffect, createMemo, createSignal, onCleanup } from "solid-js";
import type { Store } from "../bindings/query_store.ts";

/** Returns the value of a store, which is subscribed to until the owner is disposed of. */
export function useStore<Value>(store: () => Store<Value>): () => Value {
  const current = createMemo(store);
  const [track, changed] = createSignal<unknown>(0, { equals: false });
  createEffect(() => {
    onCleanup(current().subscribe(changed));
    // The effect waits while a surrounding `Suspense` is pending, and the value may have changed since it was read.
    changed(0);
  });
  return createMemo(() => {
    track();
    return current().read();
  });
}
