/** Connects stores to Vue's reactivity. */
import { computed, type ComputedRef, shallowRef, watch } from "vue";
import type { Store } from "../bindings/query_store.ts";

/**
 * Returns the value of a store, which is subscribed to until the component or the effect scope ends. Only pages subscribe:
 * Vue would not end the subscriptions of server rendering.
 */
export function useStore<Value>(store: () => Store<Value>): () => Value {
  const changes = shallowRef(0);
  const value = computed(() => {
    void changes.value;
    return store().read();
  });
  if ("document" in globalThis) {
    watch(store, (current, _previous, onCleanup) => {
      onCleanup(current.subscribe(() => changes.value++));
    }, { immediate: true });
  }
  return () => value.value;
}

/** The properties of an object as refs, which can be destructured. */
export type RefsOf<View> = { readonly [Key in keyof View]: ComputedRef<View[Key]> };

/** Returns the properties of the current view as refs. */
export function refsOf<View extends object>(view: () => View): RefsOf<View> {
  return Object.fromEntries(
    Object.keys(view()).map((key) => [key, computed(() => view()[key as keyof View])]),
  ) as RefsOf<View>;
}
