/** The time between a handover and the end of the old process, after which background work starts. */
import type { Log } from "../../kit/log.ts";
import { takeoverLimits } from "../limits.ts";
import type { ForwardedRequests } from "./forwarded_requests.ts";
import type { OldProcess } from "./old_process.ts";

export interface TakeoverCompletionOptions {
  readonly oldProcess: OldProcess;
  /** Accepts what the old process forwards. */
  readonly passed: ForwardedRequests;
  /** Starts background work. Never rejects. */
  readonly begin: () => Promise<void>;
  readonly log: Log;
}

export class TakeoverCompletion implements AsyncDisposable {
  readonly #options: TakeoverCompletionOptions;
  readonly #done: Promise<void>;

  constructor(options: TakeoverCompletionOptions) {
    this.#options = options;
    this.#done = this.#complete();
  }

  /** Stops waiting for the old process. Resolves when background work has started. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.oldProcess[Symbol.asyncDispose]();
    await this.#done;
  }

  async #complete(): Promise<void> {
    const { oldProcess, passed, begin } = this.#options;
    const ended = oldProcess.ended.then(async () => {
      await oldProcess[Symbol.asyncDispose]();
      await passed[Symbol.asyncDispose]();
    });
    await this.#end();
    await begin();
    await ended;
  }

  /** The wait is limited, so that an unresponsive process does not prevent background work forever. */
  async #end(): Promise<void> {
    const { oldProcess, log } = this.#options;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), takeoverLimits.endMs);
    });
    if (await Promise.race([oldProcess.ended, late]) === "late") {
      log("error", "The old process has not ended after the takeover. End it", { process: oldProcess.pid });
    }
    clearTimeout(timer);
  }
}
