/**
 * How fast the machine's processors are at the moment. Those of a virtual machine share cores with strangers: for seconds
 * at a time the same loop takes 1.4 to 1.7 times as long, and everything that is measured then takes as much longer.
 * A figure in milliseconds says something about the program only when this was not so.
 */
import { median } from "./statistics.ts";

const LOOPS = 3;

export class Processors implements Disposable {
  readonly #workers: readonly Worker[];
  /** The shortest time seen, of any processor. */
  #best = Infinity;

  constructor(count = navigator.hardwareConcurrency) {
    const script = new URL("./processor_worker.ts", import.meta.url);
    this.#workers = Array.from({ length: count }, () => new Worker(script, { type: "module" }));
  }

  /**
   * How many times longer than at best a fixed loop takes on the slowest of them, 1 or more. The first calls, until the
   * loop is compiled, say more than is true.
   */
  async slowdown(): Promise<number> {
    const times = await Promise.all(this.#workers.map(loopMs));
    this.#best = Math.min(this.#best, ...times);
    return Math.max(...times) / this.#best;
  }

  [Symbol.dispose](): void {
    for (const worker of this.#workers) worker.terminate();
  }
}

/** Time of one loop of several on the worker's processor, which is another one than the others' as they run at once. */
async function loopMs(worker: Worker): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number[]>();
  worker.onmessage = ({ data }: MessageEvent<number[]>) => resolve(data);
  worker.onerror = ({ message }) => reject(new Error(message));
  worker.postMessage(LOOPS);
  return median(await promise);
}
