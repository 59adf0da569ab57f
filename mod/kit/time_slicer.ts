/** Splits long work on the main thread, so that the event loop runs in between. */
import { yieldToEventLoop } from "./event_loop.ts";

/** Longest time without a yield. */
const SLICE_MS = 8;

export class TimeSlicer {
  #since = performance.now();

  /** Yields to the event loop if the time slice is used up. Call it between two pieces of work. */
  async yieldIfDue(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await yieldToEventLoop();
    this.#since = performance.now();
  }
}
