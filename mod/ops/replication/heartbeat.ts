/** Requests a URL after confirmed shipments, so that a monitoring service notices when they stop. */
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

  /** `url` is `null` without a monitoring service. `now` is a monotonic clock in milliseconds. */
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
      this.#log("warn", "Replication heartbeat failed", {
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
