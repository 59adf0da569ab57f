/** The time between a handover and the end of the old process, after which background work starts. */
import type { Log } from "../../kit/log.ts";
import { takeoverLimits } from "../limits.ts";
import type { PassedRequests } from "./passed_requests.ts";
import type { Predecessor } from "./predecessor.ts";

export interface SuccessionOptions {
  readonly predecessor: Predecessor;
  /** Accepts what the old process forwards. */
  readonly passed: PassedRequests;
  /** Starts background work. Never rejects. */
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

  /** Stops waiting for the old process. Resolves when background work has started. */
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

  /** The wait is limited, so that an unresponsive process does not prevent background work forever. */
  async #end(): Promise<void> {
    const { predecessor, log } = this.#options;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), takeoverLimits.endMs);
    });
    if (await Promise.race([predecessor.ended, late]) === "late") {
      log("error", "The old process has not ended after the takeover. End it", { process: predecessor.pid });
    }
    clearTimeout(timer);
  }
}
