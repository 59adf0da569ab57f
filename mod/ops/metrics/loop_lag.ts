/** Event loop lag of the main process: the delay of timers. */
import { opsLimits } from "../limits.ts";
import { Distribution } from "./distribution.ts";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** Measures until disposed. */
export class LoopLag implements Disposable {
  readonly seconds = new Distribution(SECONDS);
  #timer: ReturnType<typeof setTimeout>;

  constructor() {
    this.#timer = this.#later();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #later(): ReturnType<typeof setTimeout> {
    const due = performance.now() + opsLimits.loopLagSampleMs;
    return setTimeout(() => {
      this.seconds.add(Math.max(0, performance.now() - due) / 1000);
      this.#timer = this.#later();
    }, opsLimits.loopLagSampleMs);
  }
}
