/** How many requests are being answered, for who has to wait until none is. */
import { setTimeout as delay } from "node:timers/promises";

export class RequestsUnderWay {
  #count = 0;
  /** Whoever waits; `null`: nobody does. */
  #none: PromiseWithResolvers<void> | null = null;

  /** One has come, and has its answer when this settles. */
  begin(answer: Promise<unknown>): void {
    this.#count++;
    const end = () => {
      if (--this.#count > 0) return;
      this.#none?.resolve();
      this.#none = null;
    };
    answer.then(end, end);
  }

  /** Resolves when there is none; to `false` when there still are some after so long, or when `stopping` is aborted. */
  async none(msMax: number, stopping: AbortSignal): Promise<boolean> {
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
