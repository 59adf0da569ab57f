/** Counts requests in flight. */
import { setTimeout as delay } from "node:timers/promises";

export class InFlightRequests {
  #count = 0;
  /** Set while a caller waits for the last request. */
  #none: PromiseWithResolvers<void> | null = null;

  /** Counts a request until `answer` settles. */
  add(answer: Promise<unknown>): void {
    this.#count++;
    const end = () => {
      if (--this.#count > 0) return;
      this.#none?.resolve();
      this.#none = null;
    };
    answer.then(end, end);
  }

  /** Resolves to `true` when no request is in flight, or to `false` after `msMax` or when `stopping` is aborted. */
  async waitUntilIdle(msMax: number, stopping: AbortSignal): Promise<boolean> {
    if (this.#count === 0) return true;
    this.#none ??= Promise.withResolvers();
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, stopping]);
    const late = delay(msMax, false, { signal }).catch(() => false);
    const none = await Promise.race([this.#none.promise.then(() => true), late]);
    over.abort();
    return none;
  }
}
