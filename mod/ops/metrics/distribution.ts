/** How many values fell below which bounds: what a Prometheus histogram is made of, at the cost of two additions a value. */
export class Distribution {
  /** Ascending. */
  readonly bounds: readonly number[];
  /** One for each bound: values up to it and above the one before; the last is of values above all bounds. */
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

  /** For each bound the number of values up to it. */
  get cumulative(): number[] {
    let below = 0;
    return this.bounds.map((_, slot) => below += this.#counts[slot] ?? 0);
  }
}
