/**
 * Options of large caches of `lru-cache` that are limited by their number of entries. With `max`, a cache allocates memory for
 * all entries when it is created; with these, as it is filled.
 */
export const entriesMax = (count: number) => ({ maxSize: count, sizeCalculation: () => 1 });
