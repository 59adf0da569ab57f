/**
 * Short waits without sleep. A processor that has gone to sleep takes 0.05 to 0.1 ms to wake, and its caches are cold; who
 * waits for something that comes within less than a millisecond is better off when the event loop keeps turning, which
 * looks for input each time. It does so only while such waits follow one another: once one was long, waiting is sleeping
 * again until one has been short. Kernels and locks do the same ("adaptive spinning", "halt polling"). It costs the
 * processor for the length of the wait, which is left to others as soon as they want it; with a single processor the one
 * who is waited for would want it at once, so there nobody stays awake.
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
  #turning = false;

  /** Waits of at most `mostMs` are spent awake. The rest is for tests. */
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
    if (this.#lastMs >= this.#mostMs || this.#turning) return;
    this.#turning = true;
    this.#later(this.#turn);
  }

  /** What was waited for has come, if anything was. */
  over(): void {
    if (this.#since === null) return;
    this.#lastMs = this.#now() - this.#since;
    this.#since = null;
  }

  readonly #turn = (): void => {
    if (this.#since !== null && this.#now() - this.#since < this.#mostMs) this.#later(this.#turn);
    else this.#turning = false;
  };
}
