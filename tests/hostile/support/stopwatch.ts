/** Waits of one kind, one after the other, and what a moment of them was worth. */

/** Waits in milliseconds. */
export interface Spread {
  /** Of the answers that came. */
  readonly p50Ms: number;
  /**
   * The maximum wait at 99 of 100 moments. A wait counts for each moment within it at which a caller could
   * have asked: who waits asks nothing else meanwhile, and of a second without answers there would be one wait only.
   */
  readonly p99Ms: number;
  readonly longestMs: number;
}

export class Stopwatch {
  /** The time between two moments that count. */
  readonly #stepMs: number;
  #waits: number[] = [];
  #since: number | null = null;
  readonly #now: () => number;

  constructor(stepMs: number, now: () => number = () => performance.now()) {
    this.#stepMs = stepMs;
    this.#now = now;
  }

  /** How many waits have ended. */
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

  /** A wait measured elsewhere. */
  note(ms: number): void {
    this.#waits.push(ms);
  }

  /** Forgets what has ended. */
  reset(): void {
    this.#waits = [];
  }

  /** Ended waits, and the current one as though it ended now. */
  get waits(): Spread {
    const ended = this.#waits.toSorted((a, b) => a - b);
    const all = this.#since === null ? ended : [...ended, this.#now() - this.#since];
    const moments = all.flatMap((ms) => momentsOf(ms, this.#stepMs)).sort((a, b) => a - b);
    return { p50Ms: at(ended, 0.5), p99Ms: at(moments, 0.99), longestMs: Math.max(0, ...all) };
  }
}

/** The waits of callers who had asked at the beginning of a wait, a step later, and so on. */
function momentsOf(ms: number, stepMs: number): number[] {
  return Array.from({ length: Math.max(1, Math.ceil(ms / stepMs)) }, (_, n) => ms - n * stepMs);
}

/** The value that this share of all is at most; 0 of none. */
function at(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}
