/** Counters with fixed labels, and histograms for percentiles and Prometheus. A value costs some additions. */

/** Counters by two labels with fixed values, so that callers cannot create new series. */
export class Tally<Row extends string, Column extends string> {
  readonly #counts: Readonly<Record<Row, Record<Column, number>>>;

  constructor(rows: readonly Row[], columns: readonly Column[]) {
    const zeros = () => Object.fromEntries(columns.map((column) => [column, 0]));
    this.#counts = Object.fromEntries(rows.map((row) => [row, zeros()])) as Record<
      Row,
      Record<Column, number>
    >;
  }

  add(row: Row, column: Column, by = 1): void {
    this.#counts[row][column] += by;
  }

  /** All counters, including zeros. */
  *entries(): Generator<{ readonly row: Row; readonly column: Column; readonly count: number }> {
    for (const [row, columns] of Object.entries(this.#counts) as [Row, Record<Column, number>][]) {
      for (const [column, count] of Object.entries(columns) as [Column, number][]) {
        yield { row, column, count };
      }
    }
  }
}

/** First upper bound in ms of latencies, and the ratio between two: percentiles are accurate to about a tenth. */
const LATENCY_MS = 0.01;
const LATENCY_RATIO = 1.25;
const LOG_RATIO = Math.log(LATENCY_RATIO);

/** For latencies in ms, up to about ten minutes. */
export const LATENCY_BOUNDS: readonly number[] = Array.from(
  { length: 82 },
  (_, i) => LATENCY_MS * LATENCY_RATIO ** i,
);

/** Pairs of bucket index and count. */
export type PackedHistogram = readonly number[];

/** In the unit of the values; `null` without values. */
export interface Percentiles {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** Counts values by upper bound. */
export class Histogram {
  /** Ascending. */
  readonly bounds: readonly number[];
  /** One count per bound, for values above the previous bound; the last one counts values above all bounds. */
  readonly #counts: Uint32Array | Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    // Those of latencies are many, and of a day at most. The others count since the start.
    const Counts = bounds === LATENCY_BOUNDS ? Uint32Array : Float64Array;
    this.#counts = new Counts(bounds.length + 1);
  }

  add(value: number): void {
    const { bounds } = this;
    let slot = 0;
    if (bounds !== LATENCY_BOUNDS) { while (slot < bounds.length && value > (bounds[slot] ?? 0)) slot++; }
    // Computed, because a search takes three times as long.
    else if (value > LATENCY_MS) {
      slot = Math.min(bounds.length, Math.ceil(Math.log(value / LATENCY_MS) / LOG_RATIO));
    }
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
    this.#sum += value;
  }

  /** Adds the values of a histogram with the same bounds. */
  addAll(other: Histogram): void {
    const counts = this.#counts;
    for (let slot = 0; slot < counts.length; slot++) {
      counts[slot] = (counts[slot] ?? 0) + (other.#counts[slot] ?? 0);
    }
    this.#sum += other.#sum;
  }

  /** Sum of the values; those of unpacked histograms are missing. */
  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    const counts = this.#counts;
    let all = 0;
    for (let slot = 0; slot < counts.length; slot++) all += counts[slot] ?? 0;
    return all;
  }

  /** Number of values up to each bound. */
  get cumulative(): number[] {
    let below = 0;
    return this.bounds.map((_, slot) => below += this.#counts[slot] ?? 0);
  }

  get percentiles(): Percentiles {
    const { count } = this;
    const of = (share: number) => this.#quantile(share, count);
    return { p50: of(0.5), p95: of(0.95), p99: of(0.99) };
  }

  /** Returns a quantile of `all` values, interpolated between two bounds; `null` without values. */
  #quantile(share: number, all: number): number | null {
    if (all === 0) return null;
    const { bounds } = this;
    const wanted = all * share;
    let below = 0;
    for (let slot = 0; slot < bounds.length; slot++) {
      const count = this.#counts[slot] ?? 0;
      if (count > 0 && below + count >= wanted) {
        const start = bounds[slot - 1] ?? 0;
        return rounded(start + ((bounds[slot] ?? 0) - start) * Math.max(0, wanted - below) / count);
      }
      below += count;
    }
    return rounded(bounds.at(-1) ?? 0);
  }

  pack(): PackedHistogram {
    return [...this.#counts].flatMap((count, slot) => count === 0 ? [] : [slot, count]);
  }

  unpack(packed: PackedHistogram): void {
    for (let at = 0; at + 1 < packed.length; at += 2) {
      const [slot = 0, count = 0] = packed.slice(at, at + 2);
      if (slot < this.#counts.length) this.#counts[slot] = (this.#counts[slot] ?? 0) + count;
    }
  }
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
