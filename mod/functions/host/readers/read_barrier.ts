/** Read barrier: holds back answers newer than the published commits, so that no client sees an older one later. */
import type { Clock, Timer } from "../../../kit/clock.ts";

/** Answers are released after this time even without the commits, for example if no writer can be started. */
const WAIT_MS_MAX = 10_000;

interface Waiting {
  readonly ts: number;
  readonly since: number;
  readonly deliver: () => void;
}

export class ReadBarrier {
  readonly #clock: Clock;
  /** ts of the newest published commit. */
  #ts: number;
  #waiting: Waiting[] = [];
  #timer: Timer | null = null;
  #closed = false;

  constructor(clock: Clock, ts: number) {
    this.#clock = clock;
    this.#ts = ts;
  }

  /** Delivers an answer of snapshot `ts`, now or when its commits are published. */
  arrived(ts: number, deliver: () => void): void {
    if (ts <= this.#ts || this.#closed) return deliver();
    this.#waiting.push({ ts, since: this.#clock.now(), deliver });
    this.#timer ??= this.#clock.after(WAIT_MS_MAX, () => this.#releaseOld());
  }

  /** Records that commits up to `ts` were published. */
  published(ts: number): void {
    this.#ts = ts;
    if (this.#waiting.length > 0) this.#deliver((waiting) => waiting.ts <= ts);
  }

  /** Delivers all answers, including future ones. */
  close(): void {
    this.#closed = true;
    this.#deliver(() => true);
  }

  #releaseOld(): void {
    this.#timer = null;
    const before = this.#clock.now() - WAIT_MS_MAX;
    this.#deliver(({ since }) => since <= before);
    const [oldest] = this.#waiting;
    if (oldest !== undefined) {
      this.#timer = this.#clock.after(oldest.since - before, () => this.#releaseOld());
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
