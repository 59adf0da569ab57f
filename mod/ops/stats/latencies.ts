/** Latency histogram with exponential buckets; percentiles are accurate to about a tenth. */

/** Upper bound of the first bucket, and the ratio between buckets. */
const FIRST_MS = 0.01;
const RATIO = 1.25;
const LOG_RATIO = Math.log(RATIO);
/** The last one starts at about ten minutes. */
const BUCKETS = 82;

/** Pairs of bucket index and count. */
export type PackedLatencies = readonly number[];

/** In ms; `null` without values. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

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
    let all = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) all += this.#counts[bucket] ?? 0;
    return all;
  }

  /** Returns a quantile in ms; `null` without values. */
  quantile(share: number): number | null {
    return this.#quantileOf(this.count, share);
  }

  get percentiles(): Percentiles {
    const count = this.count;
    const of = (share: number) => this.#quantileOf(count, share);
    return { p50: of(0.5), p95: of(0.95), p99: of(0.99) };
  }

  #quantileOf(all: number, share: number): number | null {
    if (all === 0) return null;
    const wanted = all * share;
    let below = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const count = this.#counts[bucket] ?? 0;
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
