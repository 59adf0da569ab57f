/** Latencies of sequential calls, and their distribution over time. */

/** Waits in milliseconds. */
export interface LatencySpread {
  /** Latencies of answered calls. */
  readonly p50Ms: number;
  /**
   * The maximum latency in 99 % of the time. A wait counts for each moment within it, because a caller might have
   * called at any of them. Counting calls instead would give a second without answers the weight of a single one.
   */
  readonly p99Ms: number;
  readonly longestMs: number;
}

export class Stopwatch {
  /** Time between two counted moments. */
  readonly #stepMs: number;
  #waits: number[] = [];
  #since: number | null = null;
  readonly #now: () => number;

  constructor(stepMs: number, now: () => number = () => performance.now()) {
    this.#stepMs = stepMs;
    this.#now = now;
  }

  /** Number of finished waits. */
  get ended(): number {
    return this.#waits.length;
  }

  begin(): void {
    this.#since = this.#now();
  }

  end(): void {
    if (this.#since === null) return;
    this.note(this.#now() - this.#since);
    this.#since = null;
  }

  /** Adds a wait that was measured elsewhere. */
  note(ms: number): void {
    this.#waits.push(ms);
  }

  /** Removes the finished waits. */
  reset(): void {
    this.#waits = [];
  }

  /** Finished waits, and the current one up to now. */
  get waits(): LatencySpread {
    const ended = this.#waits.toSorted((a, b) => a - b);
    const all = this.#since === null ? ended : [...ended, this.#now() - this.#since];
    const moments = all.flatMap((ms) => momentsOf(ms, this.#stepMs)).sort((a, b) => a - b);
    return { p50Ms: at(ended, 0.5), p99Ms: at(moments, 0.99), longestMs: Math.max(0, ...all) };
  }
}

/** The waits of callers at the beginning of a wait, one step later, and so on. */
function momentsOf(ms: number, stepMs: number): number[] {
  return Array.from({ length: Math.max(1, Math.ceil(ms / stepMs)) }, (_, n) => ms - n * stepMs);
}

/** Returns the percentile of sorted values for a share from 0 to 1; 0 without values. */
function at(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}
