/**
 * Current speed of the machine's processors. A virtual machine shares cores with others, which can make everything 1.4 to 1.7
 * times slower for seconds at a time. Absolute times are meaningful only while the processors are undisturbed.
 */
import { median } from "./statistics.ts";

const LOOPS = 3;

export class Processors implements Disposable {
  readonly #workers: readonly Worker[];
  /** The shortest time of the loop on any processor. */
  #bestMs = Infinity;

  constructor(count = navigator.hardwareConcurrency) {
    const script = new URL("./processor_worker.ts", import.meta.url);
    this.#workers = Array.from({ length: count }, () => new Worker(script, { type: "module" }));
  }

  /**
   * Returns the time of a fixed loop on the slowest processor, relative to the best time so far. The first calls return
   * higher values, until the loop is compiled.
   */
  async slowdown(): Promise<number> {
    const times = await Promise.all(this.#workers.map(loopMs));
    this.#bestMs = Math.min(this.#bestMs, ...times);
    return Math.max(...times) / this.#bestMs;
  }

  [Symbol.dispose](): void {
    for (const worker of this.#workers) worker.terminate();
  }
}

/** Returns the median time of the loop. All workers run at once, so each uses a different processor. */
async function loopMs(worker: Worker): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number[]>();
  worker.onmessage = ({ data }: MessageEvent<number[]>) => resolve(data);
  worker.onerror = ({ message }) => reject(new Error(message));
  worker.postMessage(LOOPS);
  return median(await promise);
}
