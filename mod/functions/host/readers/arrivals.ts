/**
 * Answers that are newer than what main has heard of wait for the commits they show, which are on their way: whoever got
 * such an answer could else be given an older one from what main remembers.
 */
import type { Clock, Timer } from "../../../kit/clock.ts";

/** Without the commits for so long, as when no writer can be started, answers go on as they are. */
const WAIT_MS_MAX = 10_000;

interface Waiting {
  readonly ts: number;
  readonly since: number;
  readonly deliver: () => void;
}

export class Arrivals {
  readonly #clock: Clock;
  /** ts of the newest commit that main has told everybody of. */
  #ts: number;
  #waiting: Waiting[] = [];
  #timer: Timer | null = null;
  #closed = false;

  constructor(clock: Clock, ts: number) {
    this.#clock = clock;
    this.#ts = ts;
  }

  /** Delivers what was found at `ts`, now or as soon as its commits are known. */
  arrived(ts: number, deliver: () => void): void {
    if (ts <= this.#ts || this.#closed) return deliver();
    this.#waiting.push({ ts, since: this.#clock.now(), deliver });
    this.#timer ??= this.#clock.after(WAIT_MS_MAX, () => this.#giveUp());
  }

  /** Everybody has been told of the commits up to `ts`. */
  heard(ts: number): void {
    this.#ts = ts;
    if (this.#waiting.length > 0) this.#deliver((waiting) => waiting.ts <= ts);
  }

  /** Delivers everything, also what is still to come. */
  close(): void {
    this.#closed = true;
    this.#deliver(() => true);
  }

  #giveUp(): void {
    this.#timer = null;
    const before = this.#clock.now() - WAIT_MS_MAX;
    this.#deliver(({ since }) => since <= before);
    const [oldest] = this.#waiting;
    if (oldest !== undefined) {
      this.#timer = this.#clock.after(oldest.since - before, () => this.#giveUp());
    }
  }

  #deliver(due: (waiting: Waiting) => boolean): void {
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((item) => !due(item));
    if (this.#waiting.length === 0) {
      this.#timer?.cancel();
      this.#timer = null;
    }
    for (const item of waiting) if (due(item)) item.deliver();
  }
}
