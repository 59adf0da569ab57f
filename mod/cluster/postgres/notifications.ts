/** Waits for notifications from the database: new rows, or a free lease. */
import { type Clock, steadyClock } from "../../kit/clock.ts";

export class Notifications {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();
  /** Number of notifications by channel. */
  readonly #counts = new Map<string, number>();
  /** How often notifications may have been missed on all channels. */
  #missed = 0;

  constructor(clock: Clock = steadyClock) {
    this.#clock = clock;
  }

  /** Wakes the waiting callers of a channel; `null`: of all, because notifications may have been missed. */
  notify(channel: string | null): void {
    const channels = channel === null ? [...this.#waiting.keys()] : [channel];
    if (channel === null) this.#missed++;
    else this.#counts.set(channel, (this.#counts.get(channel) ?? 0) + 1);
    for (const name of channels) {
      const waiting = this.#waiting.get(name);
      this.#waiting.delete(name);
      for (const wake of waiting ?? []) wake();
    }
  }

  /**
   * Call it before a read. The returned function waits like `next`, but resolves at once if a notification has arrived since
   * this call: it may have arrived during the read.
   */
  since(channel: string): (wait: { readonly ms: number; readonly signal: AbortSignal }) => Promise<void> {
    const count = () => this.#missed + (this.#counts.get(channel) ?? 0);
    const before = count();
    return (wait) => count() > before ? Promise.resolve() : this.next(channel, wait);
  }

  /** Resolves with the next notification, after a timeout, or on an abort. */
  async next(
    channel: string,
    { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
  ): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(channel) ?? new Set();
    this.#waiting.set(channel, waiting.add(resolve));
    const timer = this.#clock.after(ms, resolve);
    const aborted = () => resolve();
    signal.addEventListener("abort", aborted, { once: true });
    await promise;
    signal.removeEventListener("abort", aborted);
    timer.cancel();
    waiting.delete(resolve);
  }
}
