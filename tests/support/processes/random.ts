/** Seeded random numbers of the loads: mulberry32, and account numbers that are uniform or follow Zipf's law. */

/** Seed of the public "transfer" benchmark. */
export const WORKLOAD_SEED = 0x12345678;

/** Returns numbers from 0 (inclusive) to 1 (exclusive), the same for the same seed. */
export function mulberry32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns numbers from 0 to `count - 1`: uniform if `alpha` is 0, otherwise with the weights `1 / (i + 1) ** alpha`. */
export function drawer(count: number, options: { alpha: number; random: () => number }): () => number {
  const { alpha, random } = options;
  if (alpha === 0) return () => Math.floor(random() * count);
  const upTo = new Float64Array(count);
  let total = 0;
  for (let i = 0; i < count; i++) upTo[i] = total += 1 / (i + 1) ** alpha;
  return () => {
    const wanted = random() * total;
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((upTo[middle] ?? total) > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}
