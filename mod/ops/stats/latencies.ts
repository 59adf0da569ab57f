/** How long things took: counts by buckets that grow by a quarter, from which percentiles are told to about a tenth. */

/** The first bucket ends here; each next one is larger by the ratio. */
const FIRST_MS = 0.01;
const RATIO = 1.25;
const LOG_RATIO = Math.log(RATIO);
/** The last one begins at about ten minutes. */
const BUCKETS = 82;

/** Pairs of a bucket and its count. */
export type PackedLatencies = readonly number[];

export class Latencies {
  readonly #counts = new Uint32Array(BUCKETS);

  add(ms: number): void {
    const bucket = ms <= FIRST_MS ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log(ms / FIRST_MS) / LOG_RATIO));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }

  addAll(other: Latencies): void {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      this.#counts[bucket] = (this.#counts[bucket] ?? 0) + (other.#counts[bucket] ?? 0);
    }
  }

  get count(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** Below which this share of them stayed, in ms; `null` when there are none. */
  quantile(share: number): number | null {
    const wanted = this.count * share;
    if (this.count === 0) return null;
    let below = 0;
    for (const [bucket, count] of this.#counts.entries()) {
      if (count === 0) continue;
      if (below + count < wanted) {
        below += count;
        continue;
      }
      const end = FIRST_MS * RATIO ** bucket;
      const start = bucket === 0 ? 0 : end / RATIO;
      return rounded(start + (end - start) * Math.max(0, wanted - below) / count);
    }
    return rounded(FIRST_MS * RATIO ** (BUCKETS - 1));
  }

  pack(): PackedLatencies {
    return [...this.#counts].flatMap((count, bucket) => count === 0 ? [] : [bucket, count]);
  }

  static unpack(packed: PackedLatencies): Latencies {
    const made = new Latencies();
    for (let at = 0; at + 1 < packed.length; at += 2) {
      const [bucket = 0, count = 0] = packed.slice(at, at + 2);
      if (bucket < BUCKETS) made.#counts[bucket] = count;
    }
    return made;
  }
}

function rounded(ms: number): number {
  return Number(ms.toPrecision(3));
}
