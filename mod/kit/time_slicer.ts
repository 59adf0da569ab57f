/** Splits long work on the main thread, so that the event loop runs in between. */
import { setImmediate } from "node:timers";

/** Longest time without a yield. */
const SLICE_MS = 8;

/** Resolves after the event loop has run other pending work. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class TimeSlicer {
  #since = performance.now();

  /** Yields to the event loop if the time slice is used up. Call it between two pieces of work. */
  async yieldIfDue(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await yieldToEventLoop();
    this.#since = performance.now();
  }
}
