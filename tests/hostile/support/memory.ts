/** Memory of the server's main process. */
import { lines } from "../../support/processes/lines.ts";

/** Monitors the resident memory of a process until it is disposed. */
export class MemoryWatch implements AsyncDisposable {
  /** MiB, at most about 50 ms old. */
  nowMiB = 0;
  peakMiB = 0;
  readonly #process: Deno.ChildProcess;
  readonly #reading: Promise<void>;
  readonly #first = Promise.withResolvers<void>();

  private constructor(pid: number) {
    // Programs read /proc here, because the runtime requires full permissions for it.
    const look = 'while grep VmRSS "/proc/$0/status"; do sleep 0.05; done';
    this.#process = new Deno.Command("sh", { args: ["-c", look, String(pid)], stdout: "piped" }).spawn();
    this.#reading = this.#read();
  }

  static async start(pid: number): Promise<MemoryWatch> {
    const watch = new MemoryWatch(pid);
    await watch.#first.promise;
    return watch;
  }

  /** Returns the milliseconds until the process uses at most this much. Throws after a timeout. */
  async backBelow(mib: number, withinMs: number): Promise<number> {
    const startedAt = performance.now();
    for (;;) {
      const ms = performance.now() - startedAt;
      if (this.nowMiB <= mib) return ms;
      if (ms > withinMs) {
        throw new Error(`It still uses ${this.nowMiB.toFixed(0)} MiB, ${mib.toFixed(0)} were right`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async #read(): Promise<void> {
    for await (const line of lines(this.#process.stdout)) {
      this.nowMiB = Number(/(\d+) kB/.exec(line)?.[1]) / 1024;
      this.peakMiB = Math.max(this.peakMiB, this.nowMiB);
      this.#first.resolve();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#process.kill();
    } catch {
      // The monitored process has ended, and this one with it.
    }
    await this.#reading;
    await this.#process.status;
  }
}
