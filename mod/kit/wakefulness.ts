/**
 * Short waits without sleep. A processor that has gone to sleep takes 0.05 to 0.1 ms to wake, and its caches are cold; who
 * waits for something that comes within less than a millisecond is better off when the event loop keeps turning, which
 * looks for input each time. It does so only while short waits follow one another closely: a long one, or a pause before
 * the next, and waiting is sleeping again. Kernels and locks do the same ("adaptive spinning", "halt polling").
 *
 * It costs processor time for the length of the wait. Where somebody else wants that processor, perhaps the very one who
 * is waited for, being awake makes the wait longer. So now and then a wait is spent the other way, and the way that has
 * been shorter of late is taken. With a single processor nobody stays awake.
 */
import { setImmediate } from "node:timers";

// Kept from before app code is loaded: in isolates the clock stands still for it.
const systemNow = performance.now.bind(performance);
const processors = navigator.hardwareConcurrency;

/** One wait in so many is spent the other way. */
const TRIED_EACH = 32;
/** Weight of the newest wait in the mean of its way, and of a tried one, which are rare. */
const WEIGHT = 1 / 32;
const TRIED_WEIGHT = 1 / 4;

export class Wakefulness {
  readonly #mostMs: number;
  readonly #now: () => number;
  readonly #later: (run: () => void) => void;
  /** When the wait under way began; `null` when there is none. */
  #since: number | null = null;
  #lastMs = Infinity;
  /** When the last wait was over. */
  #overAt = -Infinity;
  /** Whether the wait under way is likely to be short, so that either way of spending it can be the better one. */
  #counts = false;
  /** Whether it is spent awake. */
  #awake = false;
  /** Whether that is not the way that has been shorter of late. */
  #tried = false;
  /** Waits that counted. */
  #waits = 0;
  /** Mean length of those, by the way they were spent; `NaN` until there is one. */
  readonly #means = { awake: NaN, asleep: NaN };
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
    this.#counts = this.#lastMs < this.#mostMs && this.#since - this.#overAt < this.#mostMs;
    this.#awake = this.#counts && this.#choose();
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
    if (this.#counts) this.#learn(this.#lastMs);
  }

  /** Whether to stay awake, if the wait is as short as the last. */
  #choose(): boolean {
    const better = !(this.#means.awake > this.#means.asleep);
    this.#tried = ++this.#waits % TRIED_EACH === 0;
    return this.#tried ? !better : better;
  }

  #learn(ms: number): void {
    const way = this.#awake ? "awake" : "asleep";
    const mean = this.#means[way];
    // What takes very long has reasons of its own.
    const bounded = Math.min(ms, 2 * this.#mostMs);
    const weight = this.#tried ? TRIED_WEIGHT : WEIGHT;
    this.#means[way] = Number.isNaN(mean) ? bounded : mean + (bounded - mean) * weight;
  }

  readonly #turn = (): void => {
    if (this.#awake && this.#since !== null && this.#now() - this.#since < this.#mostMs) {
      this.#later(this.#turn);
    } else this.#turning = false;
  };
}
