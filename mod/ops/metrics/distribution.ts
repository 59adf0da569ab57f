/** Counts values by upper bound, for Prometheus histograms, at the cost of two additions per value. */
export class Distribution {
  /** Ascending. */
  readonly bounds: readonly number[];
  /** One count per bound, for values above the previous bound; the last one counts values above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  add(value: number): void {
    const { bounds } = this;
    let slot = 0;
    while (slot < bounds.length && value > (bounds[slot] ?? Infinity)) slot++;
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
    this.#sum += value;
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** Number of values up to each bound. */
  get cumulative(): number[] {
    let below = 0;
    return this.bounds.map((_, slot) => below += this.#counts[slot] ?? 0);
  }
}
