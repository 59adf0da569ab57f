/** The time after a takeover: what only one server may do begins when the other one is gone. */
import type { Log } from "../../kit/log.ts";
import { takeoverLimits } from "../limits.ts";
import type { PassedRequests } from "./passed_requests.ts";
import type { Predecessor } from "./predecessor.ts";

export interface SuccessionOptions {
  readonly predecessor: Predecessor;
  /** Takes what still comes to the other one. */
  readonly passed: PassedRequests;
  /** Begins what the server does by itself. Never rejects. */
  readonly begin: () => Promise<void>;
  readonly log: Log;
}

export class Succession implements AsyncDisposable {
  readonly #options: SuccessionOptions;
  readonly #done: Promise<void>;

  constructor(options: SuccessionOptions) {
    this.#options = options;
    this.#done = this.#succeed();
  }

  /** The other one is not waited for any more; resolves when what has begun stands. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.predecessor[Symbol.asyncDispose]();
    await this.#done;
  }

  async #succeed(): Promise<void> {
    const { predecessor, passed, begin } = this.#options;
    const ended = predecessor.ended.then(async () => {
      await predecessor[Symbol.asyncDispose]();
      await passed[Symbol.asyncDispose]();
    });
    await this.#end();
    await begin();
    await ended;
  }

  /** One that hangs must not keep crons from running for ever. */
  async #end(): Promise<void> {
    const { predecessor, log } = this.#options;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), takeoverLimits.endMs);
    });
    if (await Promise.race([predecessor.ended, late]) === "late") {
      log("error", "The server that gave way has not ended: end its process", { process: predecessor.pid });
    }
    clearTimeout(timer);
  }
}
