/** A clock that is frozen until a test advances it. */
import type { Clock } from "../../../mod/client/clock.ts";

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export class FakeClock implements Clock {
  #now = 1_700_000_000_000;
  #nextId = 1;
  readonly #timers = new Map<number, Timer>();

  now(): number {
    return this.#now;
  }

  setTimeout(callback: () => void, delayMs: number): number {
    const id = this.#nextId++;
    this.#timers.set(id, { at: this.#now + Math.max(0, delayMs), callback });
    return id;
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as number);
  }

  /** Timers that are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Advances the time of day while timers are frozen, as when a machine sleeps. */
  sleep(ms: number): void {
    this.#now += ms;
    for (const [id, timer] of this.#timers) this.#timers.set(id, { ...timer, at: timer.at + ms });
  }

  /** Advances time, runs due timers in order, and lets promises settle after each timer. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const due = [...this.#timers].filter(([, timer]) => timer.at <= end)
        .sort(([idA, a], [idB, b]) => a.at - b.at || idA - idB)[0];
      if (due === undefined) break;
      const [id, { at, callback }] = due;
      this.#timers.delete(id);
      this.#now = Math.max(this.#now, at);
      callback();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets promises settle that depend only on each other. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
}
