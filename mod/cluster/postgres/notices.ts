/** What servers tell one another by the database: that there are new rows, or that the lease is free. */
export class Notices {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** `null`: some may have been missed on every channel. */
  told(channel: string | null): void {
    const channels = channel === null ? [...this.#waiting.keys()] : [channel];
    for (const name of channels) {
      const waiting = this.#waiting.get(name);
      this.#waiting.delete(name);
      for (const wake of waiting ?? []) wake();
    }
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
    const timer = setTimeout(resolve, ms);
    const aborted = () => resolve();
    signal.addEventListener("abort", aborted, { once: true });
    await promise;
    signal.removeEventListener("abort", aborted);
    clearTimeout(timer);
    waiting.delete(resolve);
  }
}
