/** A clock that only a test advances. It visits every instant at which a timer is due. */
import { TestClock } from "../../mod/testing/clock.ts";

export class FakeClock extends TestClock {
  constructor(startsAt = 1_000_000) {
    super(startsAt);
  }

  /** Moves on by `ms` within this turn. */
  move(ms: number): void {
    const end = this.now() + ms;
    for (let at = this.nextAt; at !== null && at <= end; at = this.nextAt) this.moveTo(at);
    this.moveTo(end);
  }

  /** Moves on by `ms`; what follows from each timer has happened before the next one fires. */
  async advance(ms: number): Promise<void> {
    const end = this.now() + ms;
    await settled();
    for (let at = this.nextAt; at !== null && at <= end; at = this.nextAt) {
      this.moveTo(at);
      await settled();
    }
    this.moveTo(end);
    await settled();
  }
}

/** Resolves when all pending promise callbacks have run. Does not wait for real timers. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}
