/** Options of large caches limited by count. With `max` instead, a cache allocates memory for all entries at once. */
export const entriesMax = (count: number) => ({ maxSize: count, sizeCalculation: () => 1 });
