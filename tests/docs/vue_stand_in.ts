/** The part of Vue that the documentation uses, as types. */
export type MaybeRefOrGetter<T> = T | { readonly value: T } | (() => T);

export declare function shallowRef<T>(): { value: T | undefined };

export declare function toValue<T>(source: MaybeRefOrGetter<T>): T;

export declare function watch<T>(
  source: () => T,
  changed: (value: T, previous: T | undefined, onCleanup: (cleanup: () => void) => void) => void,
  options: { readonly immediate: boolean },
): () => void;
