/** Starts a lost writer again, delayed after frequent losses or failed starts. */
import type { Clock } from "../../../kit/clock.ts";
import type { Log } from "../../../kit/log.ts";
import { isolateLimits } from "../../limits.ts";
import type { IsolateStarter, StartResult } from "../process/isolate.ts";
import { Restarts } from "../process/restarts.ts";

export interface WriterRestartsOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
}

export class WriterRestarts {
  readonly #options: WriterRestartsOptions;
  readonly #restarts = new Restarts();
  #state: "idle" | "pausing" | "starting" | "closed" = "idle";
  /** Consecutive failed starts. */
  #failures = 0;
  /** Ends the delay before a start. Set during the delay. */
  #endPause: (() => void) | null = null;

  constructor(options: WriterRestartsOptions) {
    this.#options = options;
  }

  get isStarting(): boolean {
    return this.#state === "starting";
  }

  /**
   * Tries once to start a writer. Returns `null` if another attempt is in progress, or if the writer is not needed any more after
   * the delay. Never rejects.
   */
  async start(isNeeded: () => boolean = () => true): Promise<StartResult | null> {
    if (this.#state !== "idle") return null;
    const { starter, clock, log } = this.#options;
    const pauseMs = this.#restarts.pauseMs(clock.now(), this.#failures);
    if (pauseMs > 0) await this.#pause(pauseMs);
    if (this.#isClosed || !isNeeded()) return null;
    this.#state = "starting";
    const started = await starter.start("writer");
    if (this.#isClosed) return started;
    this.#state = "idle";
    if (started.ok) this.#failures = 0;
    else {
      this.#failures = Math.min(this.#failures + 1, isolateLimits.restartsPerMinuteMax);
      log("error", "Cannot start the writer", { message: started.message });
    }
    return started;
  }

  /** Ends a delay, and prevents further starts. */
  close(): void {
    this.#state = "closed";
    this.#endPause?.();
  }

  get #isClosed(): boolean {
    return this.#state === "closed";
  }

  async #pause(ms: number): Promise<void> {
    this.#state = "pausing";
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.after(ms, resolve);
    this.#endPause = () => {
      timer.cancel();
      resolve();
    };
    await promise;
    this.#endPause = null;
    if (!this.#isClosed) this.#state = "idle";
  }
}
