/** Measures this process's scheduling delays, which are subtracted when others are judged by elapsed time. */
export class SchedulingDelay {
  readonly #now: () => number;
  #ms = 0;
  /** When the pending timer is due, or `null`. */
  #dueAt: number | null = null;

  constructor(now: () => number) {
    this.#now = now;
  }

  timerSet(ms: number): void {
    this.#dueAt = this.#now() + ms;
  }

  timerFired(): void {
    this.#ms = this.ms;
    this.#dueAt = null;
  }

  /** Total delay so far. Only differences are meaningful. */
  get ms(): number {
    return this.#ms + (this.#dueAt === null ? 0 : Math.max(0, this.#now() - this.#dueAt));
  }
}
