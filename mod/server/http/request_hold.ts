/** Requests that wait while no backend serves: during a takeover or a change of role. */
import { ServiceError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import { gateLimits } from "../limits.ts";

export class RequestHold {
  readonly #clock: Pick<Clock, "after">;
  #next = Promise.withResolvers<void>();
  #waiting = 0;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Waits for `release`, for a limited time. Rejects with `unavailable` after it, and if too many requests wait already. */
  async wait(): Promise<void> {
    if (this.#waiting >= gateLimits.requestsWaitingMax) throw new ServiceError("unavailable");
    this.#waiting++;
    const next = this.#next;
    const late = Promise.withResolvers<never>();
    const timer = this.#clock.after(
      gateLimits.waitMs,
      () => late.reject(new ServiceError("unavailable")),
    );
    try {
      await Promise.race([next.promise, late.promise]);
    } finally {
      timer.cancel();
      this.#waiting--;
    }
  }

  /** Continues all requests that wait. */
  release(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }
}
