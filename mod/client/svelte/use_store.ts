/** Connects stores to Svelte's reactivity. */
import { createSubscriber } from "svelte/reactivity";
import type { Store } from "../bindings/query_store.ts";

/** Returns the value of a store, which is subscribed to while an effect, a template or a derived value reads it. */
export function useStore<Value>(store: () => Store<Value>): () => Value {
  let subscribed: Store<Value> | undefined;
  let track = () => {};
  return () => {
    const current = store();
    if (current !== subscribed) {
      subscribed = current;
      track = createSubscriber(current.subscribe);
    }
    track();
    return current.read();
  };
}
