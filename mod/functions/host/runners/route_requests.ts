/** Requests of the app's routes: a bounded number in the runners at once, the others wait their turn. */
import { routeLimits } from "../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import { overloaded } from "../outcomes.ts";
import { type RouteAnswer, RouteExchange, type RouteRequest } from "./route_exchange.ts";

/** Answers a request in a runner, as an action is run. Never rejects. */
export type RunExchange = (call: FunctionCall, exchange: RouteExchange) => Promise<Outcome>;

export class RouteRequests {
  readonly #run: RunExchange;
  #running = 0;
  /** Those whose turn has not come, by what lets them in. */
  readonly #waiting: (() => void)[] = [];

  constructor(run: RunExchange) {
    this.#run = run;
  }

  /** Answers a request. Never rejects; resolves when the response begins. */
  async respond(request: RouteRequest): Promise<RouteAnswer> {
    if (!await this.#enter()) {
      return failure(overloaded(`${this.#waiting.length} requests are waiting`));
    }
    let exchange: RouteExchange;
    try {
      exchange = new RouteExchange(request);
    } catch (error) {
      this.#leave();
      const message = error instanceof Error ? error.message : String(error);
      return { ok: false, error: { kind: "args", message, data: null } };
    }
    const { pathname } = new URL(request.request.url);
    const call: FunctionCall = {
      udfPath: `${request.request.method} ${pathname}`,
      args: {},
      identity: request.identity,
      origin: "client",
    };
    this.#run(call, exchange).then((outcome) => {
      this.#leave();
      exchange.end(outcome);
    });
    return await exchange.answer;
  }

  /** Waits for its turn; `false` when too many wait already. */
  async #enter(): Promise<boolean> {
    if (this.#running < routeLimits.requestsMax) {
      this.#running++;
      return true;
    }
    if (this.#waiting.length >= routeLimits.requestsWaitingMax) return false;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return true;
  }

  /** Gives its place to the next one. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running--;
    else next();
  }
}

function failure(outcome: Outcome): RouteAnswer {
  if (outcome.ok) throw new TypeError("A success is no failure");
  return { ok: false, error: outcome.error };
}
