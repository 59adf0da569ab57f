/**
 * Adaptive spinning: busy-waits for events that arrive within less than a millisecond. A sleeping processor takes 0.05
 * to 0.1 ms to wake and its caches are cold; while the event loop keeps ticking, it polls for input each time. It spins
 * only while short waits follow each other closely. Kernels and locks do the same ("halt polling"). It costs processor
 * time for the length of the wait. On a single processor it never spins: the awaited process needs that processor.
 */
import { setImmediate } from "node:timers";

// Saved before app code is loaded: in isolates time is frozen for it.
const systemNow = performance.now.bind(performance);
const processors = navigator.hardwareConcurrency;

export class AdaptiveSpinner {
  readonly #maxMs: number;
  readonly #now: () => number;
  readonly #later: (run: () => void) => void;
  /** Start of the wait in progress, or `null`. */
  #since: number | null = null;
  #lastMs = Infinity;
  /** End of the last wait. */
  #endedAt = -Infinity;
  /** Whether the wait in progress spins. */
  #shouldSpin = false;
  #spinning = false;

  /** A wait spins if the last one took less than `maxMs` and ended less than `maxMs` ago. The options are for tests. */
  constructor(
    mostMs: number,
    { now = systemNow, later = setImmediate, cores = processors }: {
      readonly now?: () => number;
      /** Runs a function in the next tick of the event loop. */
      readonly later?: (run: () => void) => void;
      readonly cores?: number;
    } = {},
  ) {
    this.#maxMs = cores > 1 ? mostMs : 0;
    this.#now = now;
    this.#later = later;
  }

  waitStarted(): void {
    this.#since = this.#now();
    this.#shouldSpin = this.#lastMs < this.#maxMs && this.#since - this.#endedAt < this.#maxMs;
    if (!this.#shouldSpin || this.#spinning) return;
    this.#spinning = true;
    this.#later(this.#spin);
  }

  /** Call it when the event has arrived. Does nothing without a wait. */
  waitEnded(): void {
    if (this.#since === null) return;
    this.#endedAt = this.#now();
    this.#lastMs = this.#endedAt - this.#since;
    this.#since = null;
  }

  readonly #spin = (): void => {
    if (this.#shouldSpin && this.#since !== null && this.#now() - this.#since < this.#maxMs) {
      this.#later(this.#spin);
    } else this.#spinning = false;
  };
}
