/** Asks an address after what was confirmed, so that a service elsewhere notices when nothing is confirmed any more. */
import type { Log } from "../../kit/log.ts";
import { replicationLimits } from "../limits.ts";

const systemNow = performance.now.bind(performance);

export class Heartbeat implements AsyncDisposable {
  readonly #url: string | null;
  readonly #log: Log;
  readonly #now: () => number;
  #sentAt = -Infinity;
  #request: Promise<void> | null = null;
  readonly #stopping = new AbortController();

  /** `null`: nobody is asked. `now`: a clock that never goes back, in ms from any moment. */
  constructor(
    url: string | null,
    { log, now = systemNow }: { readonly log: Log; readonly now?: () => number },
  ) {
    this.#url = url;
    this.#log = log;
    this.#now = now;
  }

  /** Sends at most one request per interval; failures are logged. */
  beat(): void {
    const { heartbeatMs, heartbeatTimeoutMs } = replicationLimits;
    const now = this.#now();
    if (this.#url === null || this.#request !== null || now - this.#sentAt < heartbeatMs) return;
    this.#sentAt = now;
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(heartbeatTimeoutMs)]);
    this.#request = fetch(this.#url, { signal, redirect: "follow" }).then(async (response) => {
      await response.body?.cancel();
      if (!response.ok) throw new Error(`it answered ${response.status}`);
    }).catch((error) => {
      if (this.#stopping.signal.aborted) return;
      this.#log("warn", "The heartbeat of the replica was not taken", {
        code: "replication",
        reason: error instanceof Error ? error.message : String(error),
      });
    }).finally(() => this.#request = null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#request;
  }
}
