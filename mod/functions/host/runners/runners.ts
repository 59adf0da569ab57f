/** The action runners of a host: a shared pool, and optionally a separate one for actions with a certain queue key. */
import { isolateLimits } from "../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { RouteExchange } from "./route_exchange.ts";
import { RunnerPool, type RunnerPoolOptions } from "./runner_pool.ts";

export interface RunnersOptions extends RunnerPoolOptions {
  /** Actions with this queue key, and what they call, run in the separate pool. */
  readonly apart?: string | undefined;
}

export class Runners {
  readonly #forAll: RunnerPool;
  readonly #apart: { readonly turn: string; readonly runners: RunnerPool } | null;

  constructor({ apart, ...options }: RunnersOptions) {
    this.#forAll = new RunnerPool(options);
    this.#apart = apart === undefined ? null : {
      turn: apart,
      runners: new RunnerPool({ ...options, runnersMax: isolateLimits.runnersApartMax }),
    };
  }

  /** Runs an action or handles a route request. Never rejects. */
  act(call: FunctionCall, exchange?: RouteExchange): Promise<Outcome> {
    const isApart = this.#apart !== null && call.caller?.turn === this.#apart.turn;
    return (isApart ? this.#apart.runners : this.#forAll).act(call, exchange);
  }

  /** Ends the separate pool's actions. See {@linkcode RunnerPool.endAll}. */
  async endApart(): Promise<void> {
    await this.#apart?.runners.endAll();
  }

  /** Starts runners with new code or settings for new actions. Old runners end with their last action. */
  replace(): void {
    this.#forAll.replace();
    this.#apart?.runners.replace();
  }

  /** Ends all runners and answers their actions with an error. */
  async close(): Promise<void> {
    await Promise.all([this.#forAll.close(), this.#apart?.runners.close()]);
  }
}
