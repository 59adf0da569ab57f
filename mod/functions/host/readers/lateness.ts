/**
 * How long this process was kept from its turn: by other programs, or by what it had to do itself. Whoever judges another
 * process by the time that passes takes that off, because the other one most likely had to wait as well.
 */
export class Lateness {
  readonly #now: () => number;
  #ms = 0;
  /** When the timer that is looked at has to fire; `null` while there is none. */
  #dueAt: number | null = null;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A timer was set. */
  timerSet(ms: number): void {
    this.#dueAt = this.#now() + ms;
  }

  /** It has fired. */
  timerFired(): void {
    this.#ms = this.ms;
    this.#dueAt = null;
  }

  /** In all, so far; only differences count. */
  get ms(): number {
    return this.#ms + (this.#dueAt === null ? 0 : Math.max(0, this.#now() - this.#dueAt));
  }
}
