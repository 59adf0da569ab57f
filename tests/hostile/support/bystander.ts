/** An ordinary user of the server, whose latencies each row reports. Runs in a separate thread. */
import type { FromBystander, ToBystander } from "./bystander_worker.ts";
import type { LatencySpread } from "./stopwatch.ts";

/** Answers since the bystander started. */
export interface Served {
  readonly queries: number;
  readonly mutations: number;
}

/** Latencies of the bystander. */
export interface Waits {
  readonly query: LatencySpread;
  readonly mutation: LatencySpread;
  /** From sending a mutation to the Transition that shows it. */
  readonly shown: LatencySpread;
  /** Lateness of the bystander's own pauses, which the server does not cause. */
  readonly late: LatencySpread;
  /** The first failed calls of the bystander. */
  readonly failures: readonly string[];
}

export class Bystander implements Disposable {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Signs in a user, subscribes to a query, and starts the calls. */
  static async start(
    options: { readonly port: number; readonly token: string; readonly isMeasured: boolean },
  ): Promise<Bystander> {
    const url = new URL("./bystander_worker.ts", import.meta.url);
    const bystander = new Bystander(new Worker(url, { type: "module" }));
    await bystander.#ask({ type: "start", ...options }, "started");
    return bystander;
  }

  async served(): Promise<Served> {
    const { served } = await this.#ask({ type: "count" }, "counted");
    return served;
  }

  /** Stops the calls. Current waits count until now. */
  async stop(): Promise<Waits> {
    const { waits } = await this.#ask({ type: "stop" }, "stopped");
    return waits;
  }

  [Symbol.dispose](): void {
    this.#worker.terminate();
  }

  #ask<Type extends FromBystander["type"]>(
    message: ToBystander,
    answer: Type,
  ): Promise<Extract<FromBystander, { type: Type }>> {
    return new Promise((resolve, reject) => {
      this.#worker.onmessage = ({ data }: MessageEvent<FromBystander>) => {
        if (data.type === answer) resolve(data as Extract<FromBystander, { type: Type }>);
        else reject(new Error(data.type === "failed" ? data.message : `The bystander said ${data.type}`));
      };
      this.#worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(`The bystander broke down: ${event.message}`));
      };
      this.#worker.postMessage(message);
    });
  }
}
