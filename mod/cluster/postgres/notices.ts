/** What servers tell one another by the database: that there are new rows, or that the lease is free. */
import { type Clock, steadyClock } from "../../kit/clock.ts";

export class Notices {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();
  /** How many came on each channel, and how often some may have been missed on all. */
  readonly #counts = new Map<string, number>();
  #missed = 0;

  constructor(clock: Clock = steadyClock) {
    this.#clock = clock;
  }

  /** `null`: some may have been missed on every channel. */
  told(channel: string | null): void {
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
   * To be asked before one looks whether there is something. What it gives waits as `next` does, but for a notice that has come
   * since: it may have come while one looked, and nobody tells it again.
   */
  from(channel: string): (wait: { readonly ms: number; readonly signal: AbortSignal }) => Promise<void> {
    const come = () => this.#missed + (this.#counts.get(channel) ?? 0);
    const before = come();
    return (wait) => come() > before ? Promise.resolve() : this.next(channel, wait);
  }

  /** Resolves with the next notice, when the time is over, or when it is aborted. */
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
