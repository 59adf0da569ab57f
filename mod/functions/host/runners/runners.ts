/** The action runners of a host: those for all, and, where the actions of one turn run apart, those that have only these. */
import { isolateLimits } from "../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { RouteExchange } from "./route_exchange.ts";
import { RunnerPool, type RunnerPoolOptions } from "./runner_pool.ts";

export interface RunnersOptions extends RunnerPoolOptions {
  /** Actions of this turn, and what they call, run apart. */
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

  /** Runs an action, or answers the request of a route in its place. Never rejects. */
  act(call: FunctionCall, exchange?: RouteExchange): Promise<Outcome> {
    const isApart = this.#apart !== null && call.caller?.turn === this.#apart.turn;
    return (isApart ? this.#apart.runners : this.#forAll).act(call, exchange);
  }

  /** Ends what runs apart, at once and for good; see {@linkcode RunnerPool.endAll}. */
  async endApart(): Promise<void> {
    await this.#apart?.runners.endAll();
  }

  /** New actions get runners with new code, or new settings; the old ones end with their last action. */
  replace(): void {
    this.#forAll.replace();
    this.#apart?.runners.replace();
  }

  /** Ends all; what they had is answered with an error. */
  async close(): Promise<void> {
    await Promise.all([this.#forAll.close(), this.#apart?.runners.close()]);
  }
}
