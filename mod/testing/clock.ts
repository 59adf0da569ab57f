/** The clock of a test server. Time is frozen until the test advances it. */
import type { Clock, Timer } from "../kit/clock.ts";

interface Waiting {
  readonly at: number;
  readonly run: () => void;
}

export class TestClock implements Clock {
  #now: number;
  readonly #waiting = new Set<Waiting>();

  constructor(startsAt: number) {
    this.#now = startsAt;
  }

  /** Pending timers. */
  get timers(): number {
    return this.#waiting.size;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): Timer {
    const waiting = { at: this.#now + Math.max(0, ms), run };
    this.#waiting.add(waiting);
    return { cancel: () => void this.#waiting.delete(waiting) };
  }

  every(ms: number, run: () => void): Timer {
    const again = () => {
      timer = this.after(ms, again);
      run();
    };
    let timer = this.after(ms, again);
    return { cancel: () => timer.cancel() };
  }

  /** The time of the next pending timer, or `null`. */
  get nextAt(): number | null {
    let next: number | null = null;
    for (const { at } of this.#waiting) if (next === null || at < next) next = at;
    return next;
  }

  /** Advances to an instant, calling due timers in order. The instant must not be in the past. */
  moveTo(instant: number): void {
    this.#now = Math.max(this.#now, instant);
    const due = [...this.#waiting].filter(({ at }) => at <= this.#now).sort((a, b) => a.at - b.at);
    for (const waiting of due) if (this.#waiting.delete(waiting)) waiting.run();
  }
}
