/**
 * Whether anybody looks at what a follower shows. While nobody does more comes together before it is applied, which costs a
 * part of it; who looks first has what is there applied at once.
 */
import { type Clock, steadyClock } from "../../kit/clock.ts";
import { clusterLimits } from "./limits.ts";

export interface AttentionOptions {
  /** Whether somebody is there who looks all the time. */
  readonly isWatched: () => boolean;
  /** Called when somebody looks after a while in which nobody did. */
  readonly wake: () => void;
  readonly clock?: Clock;
}

export class Attention {
  readonly #options: AttentionOptions;
  readonly #clock: Clock;
  #lookedAt = -Infinity;

  constructor(options: AttentionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
  }

  /** Whether somebody looks, or has a moment ago. */
  get isPaid(): boolean {
    return this.#clock.now() - this.#lookedAt < clusterLimits.lookMs || this.#options.isWatched();
  }

  /** Somebody looks. Gives back whether nobody had for a while. */
  pay(): boolean {
    const isFirst = !this.isPaid;
    this.#lookedAt = this.#clock.now();
    if (isFirst) this.#options.wake();
    return isFirst;
  }
}
