/** The action runners of a host: a shared pool, and optionally a separate one for actions with a certain queue key. */
import { isolateLimits } from "../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { RouteExchange } from "./route_exchange.ts";
import { RunnerPool, type RunnerPoolOptions } from "./runner_pool.ts";

export interface RunnersOptions extends RunnerPoolOptions {
  /** Actions with this queue key, and what they call, run in the separate pool. */
  readonly dedicatedQueue?: string | undefined;
}

export class Runners {
  readonly #shared: RunnerPool;
  readonly #dedicated: { readonly queueKey: string; readonly runners: RunnerPool } | null;

  constructor({ dedicatedQueue, ...options }: RunnersOptions) {
    this.#shared = new RunnerPool(options);
    this.#dedicated = dedicatedQueue === undefined ? null : {
      queueKey: dedicatedQueue,
      runners: new RunnerPool({ ...options, runnersMax: isolateLimits.dedicatedRunnersMax }),
    };
  }

  /** Runs an action or handles a route request. Never rejects. */
  act(call: FunctionCall, exchange?: RouteExchange): Promise<Outcome> {
    const isDedicated = this.#dedicated !== null && call.caller?.queueKey === this.#dedicated.queueKey;
    return (isDedicated ? this.#dedicated.runners : this.#shared).act(call, exchange);
  }

  /** Ends the separate pool's actions. See {@linkcode RunnerPool.endAll}. */
  async endDedicatedRuns(): Promise<void> {
    await this.#dedicated?.runners.endAll();
  }

  /** Starts runners with new code or settings for new actions. Old runners end with their last action. */
  replace(): void {
    this.#shared.replace();
    this.#dedicated?.runners.replace();
  }

  /** Ends all runners and answers their actions with an error. */
  async close(): Promise<void> {
    await Promise.all([this.#shared.close(), this.#dedicated?.runners.close()]);
  }
}
