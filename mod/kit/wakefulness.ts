/**
 * Short waits without sleep. A processor that has gone to sleep takes 0.05 to 0.1 ms to wake, and its caches are cold; who
 * waits for something that comes within less than a millisecond is better off when the event loop keeps turning, which
 * looks for input each time. It does so only while short waits follow one another closely: a long one, or a pause before
 * the next, and waiting is sleeping again. Kernels and locks do the same ("adaptive spinning", "halt polling"). It costs
 * processor time for the length of the wait, which the scheduler shares among all who want it; with a single processor
 * the one who is waited for would want it at once, so there nobody stays awake.
 */
import { setImmediate } from "node:timers";

// Kept from before app code is loaded: in isolates the clock stands still for it.
const systemNow = performance.now.bind(performance);
const processors = navigator.hardwareConcurrency;

export class Wakefulness {
  readonly #mostMs: number;
  readonly #now: () => number;
  readonly #later: (run: () => void) => void;
  /** When the wait under way began; `null` when there is none. */
  #since: number | null = null;
  #lastMs = Infinity;
  /** When the last wait was over. */
  #overAt = -Infinity;
  /** Whether the wait under way is spent awake. */
  #awake = false;
  #turning = false;

  /** Waits of less than `mostMs` are spent awake that begin less than that after another such one. The rest is for tests. */
  constructor(
    mostMs: number,
    { now = systemNow, later = setImmediate, cores = processors }: {
      readonly now?: () => number;
      /** Runs something in the next turn of the event loop. */
      readonly later?: (run: () => void) => void;
      readonly cores?: number;
    } = {},
  ) {
    this.#mostMs = cores > 1 ? mostMs : 0;
    this.#now = now;
    this.#later = later;
  }

  /** A wait begins. */
  wait(): void {
    this.#since = this.#now();
    this.#awake = this.#lastMs < this.#mostMs && this.#since - this.#overAt < this.#mostMs;
    if (!this.#awake || this.#turning) return;
    this.#turning = true;
    this.#later(this.#turn);
  }

  /** What was waited for has come, if anything was. */
  over(): void {
    if (this.#since === null) return;
    this.#overAt = this.#now();
    this.#lastMs = this.#overAt - this.#since;
    this.#since = null;
  }

  readonly #turn = (): void => {
    if (this.#awake && this.#since !== null && this.#now() - this.#since < this.#mostMs) {
      this.#later(this.#turn);
    } else this.#turning = false;
  };
}
