/** The time of a test server: it stands still until the test moves it. */

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

export class TestClock {
  #now: number;
  readonly #timers = new Set<Timer>();

  constructor(startsAt: number) {
    this.#now = startsAt;
  }

  /** Milliseconds since the epoch. */
  now(): number {
    return this.#now;
  }

  /** Calls `run` once when the time has come; returns what cancels it. */
  after(delayMs: number, run: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, delayMs), run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** When the next timer is due, `null` without one. */
  get nextAt(): number | null {
    let next: number | null = null;
    for (const { at } of this.#timers) if (next === null || at < next) next = at;
    return next;
  }

  /** Moves to an instant that is not in the past and calls what is due by then, in the order of time. */
  moveTo(instant: number): void {
    this.#now = Math.max(this.#now, instant);
    const due = [...this.#timers].filter(({ at }) => at <= this.#now).sort((a, b) => a.at - b.at);
    for (const timer of due) if (this.#timers.delete(timer)) timer.run();
  }
}
