/** A clock that stands still until a test moves it. */
import type { HostClock, Timer } from "../../../../mod/functions/host/clock.ts";

interface Waiting {
  readonly at: number;
  readonly run: () => void;
}

export class FakeClock implements HostClock {
  #now = 0;
  readonly #timers = new Set<Waiting>();

  /** Timers that have neither fired nor been cancelled. */
  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): Timer {
    const timer = { at: this.#now + ms, run };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Moves on, firing what falls due in order, with everything that follows from it. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await settled();
      const next = [...this.#timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = until;
    await settled();
  }
}

/** Resolves when all that follows from what has happened has happened; nothing here waits for a real timer. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}
