/** A queue whose consumer waits for items, in the order in which they arrive. */
export class AsyncQueue<Item> {
  readonly #items: Item[] = [];
  #waiting: (() => void) | null = null;

  add(item: Item): void {
    this.#items.push(item);
    this.#waiting?.();
  }

  /** Removes and returns the items that have arrived. */
  all(): Item[] {
    return this.#items.splice(0);
  }

  /** Removes and returns the next item. Throws an error that names it when the time is over. */
  async next(what: string, { ms, signal }: StepTimeout): Promise<Item> {
    const item = this.#items.shift();
    if (item !== undefined) return item;
    const lateError = () => new Error(`${what} did not arrive within ${ms / 1000} s`);
    if (signal.aborted) throw lateError();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let end: (() => void) | undefined;
    await new Promise<void>((resolve, reject) => {
      const late = () => reject(lateError());
      this.#waiting = resolve;
      timer = setTimeout(late, ms);
      signal.addEventListener("abort", end = late);
    }).finally(() => {
      clearTimeout(timer);
      if (end !== undefined) signal.removeEventListener("abort", end);
      this.#waiting = null;
    });
    return await this.next(what, { ms, signal });
  }
}

/** How long to wait for an item. */
export interface StepTimeout {
  readonly ms: number;
  /** Aborted when the scenario has failed for another reason. */
  readonly signal: AbortSignal;
}
