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

/** Who does something in waits that are spent awake. */
export interface WaitListener {
  /** The event loop has turned, and the wait goes on: nothing that was left to run holds it up. */
  begun(): void;
  /** The wait is long, and the rest of it is sleep. Called after `begun` only. */
  long(): void;
}

/** A wait under way. */
interface Wait {
  readonly since: number;
  /** Whether it is spent awake, until it turns out to be long. */
  awake: boolean;
  readonly listener: WaitListener | null;
  /** Whether the listener was told that it has begun. */
  told: boolean;
}

export class Wakefulness {
  readonly #mostMs: number;
  readonly #now: () => number;
  readonly #later: (run: () => void) => void;
  #wait: Wait | null = null;
  #lastMs = Infinity;
  /** When the last wait was over. */
  #overAt = -Infinity;
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

  /** A wait begins. The listener hears nothing of one that is not spent awake. */
  wait(listener: WaitListener | null = null): void {
    const since = this.#now();
    const awake = this.#lastMs < this.#mostMs && since - this.#overAt < this.#mostMs;
    this.#wait = { since, awake, listener, told: false };
    if (!awake || this.#turning) return;
    this.#turning = true;
    this.#later(this.#turn);
  }

  /** What was waited for has come, if anything was. */
  over(): void {
    if (this.#wait === null) return;
    this.#overAt = this.#now();
    this.#lastMs = this.#overAt - this.#wait.since;
    this.#wait = null;
  }

  readonly #turn = (): void => {
    const wait = this.#wait;
    if (wait === null || !wait.awake) {
      this.#turning = false;
      return;
    }
    wait.awake = this.#now() - wait.since < this.#mostMs;
    this.#turning = wait.awake;
    if (wait.awake) this.#later(this.#turn);
    if (wait.awake && !wait.told) {
      wait.told = true;
      wait.listener?.begun();
    } else if (!wait.awake && wait.told) {
      wait.listener?.long();
    }
  };
}
