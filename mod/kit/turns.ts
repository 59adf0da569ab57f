/** Long work on the main thread in small pieces: what else there is to do gets its turn in between. */
import { pause } from "./pause.ts";

/** Longest that others wait. */
const SLICE_MS = 8;

export class Turns {
  #since = performance.now();

  /** Awaited between two pieces of work. */
  async next(): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await pause();
    this.#since = performance.now();
  }
}
