/**
 * Short waits without sleep. A processor that has gone to sleep takes 0.05 to 0.1 ms to wake, and its caches are cold; who
 * waits for something that comes within less than a millisecond is better off when the event loop keeps turning, which
 * looks for input each time. It does so only while short waits follow one another closely: a long one, or a pause before
 * the next, and waiting is sleeping again. Kernels and locks do the same ("adaptive spinning", "halt polling").
 *
 * It costs processor time for the length of the wait. Where somebody else wants that processor, perhaps the very one who
 * is waited for, a wait spent awake is the longer one: when some in a row turn out to be long, the next ones are spent
 * asleep, then it is tried again. With a single processor nobody stays awake.
 */
import { setImmediate } from "node:timers";

// Kept from before app code is loaded: in isolates the clock stands still for it.
const systemNow = performance.now.bind(performance);
const processors = navigator.hardwareConcurrency;

/** After so many waits in a row that were spent awake and were long, */
const LONG_WAITS_MAX = 3;
/** so many are spent asleep: few at first, twice as many each time they are long again. */
const WAITS_ASLEEP = { least: 16, most: 1024 } as const;

export class Wakefulness {
  readonly #mostMs: number;
  readonly #now: () => number;
  readonly #later: (run: () => void) => void;
  /** When the wait under way began; `null` when there is none. */
  #since: number | null = null;
  #lastMs = Infinity;
  /** When the last wait was over. */
  #overAt = -Infinity;
  /** Whether the wait under way, or the last one, is spent awake. */
  #awake = false;
  /** Waits spent awake that were long, since the last one that was short. */
  #longWaits = 0;
  /** Waits that are spent asleep before it is tried again, and how many it will be the next time. */
  #waitsAsleep = 0;
  #nextAsleep: number = WAITS_ASLEEP.least;
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
    const short = this.#lastMs < this.#mostMs && this.#since - this.#overAt < this.#mostMs;
    if (short && this.#waitsAsleep > 0) this.#waitsAsleep--;
    this.#awake = short && this.#waitsAsleep === 0;
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
    if (!this.#awake) return;
    if (this.#lastMs < this.#mostMs) {
      this.#longWaits = 0;
      this.#nextAsleep = Math.max(WAITS_ASLEEP.least, this.#nextAsleep / 2);
    } else if (++this.#longWaits >= LONG_WAITS_MAX) {
      this.#waitsAsleep = this.#nextAsleep;
      this.#nextAsleep = Math.min(WAITS_ASLEEP.most, this.#nextAsleep * 2);
    }
  }

  readonly #turn = (): void => {
    if (this.#awake && this.#since !== null && this.#now() - this.#since < this.#mostMs) {
      this.#later(this.#turn);
    } else this.#turning = false;
  };
}
