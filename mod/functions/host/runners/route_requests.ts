/** Requests of the app's routes: a bounded number in the runners at once, in which the callers who wait take turns. */
import { requestPath } from "../../../kit/request_path.ts";
import { fairnessLimits, routeLimits } from "../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import { overloaded } from "../outcomes.ts";
import { type RouteAnswer, RouteExchange, type RouteRequest } from "./route_exchange.ts";

/** Answers a request in a runner, as an action is run. Never rejects. */
export type RunExchange = (call: FunctionCall, exchange: RouteExchange) => Promise<Outcome>;

interface Waiting {
  /** Who answers for it. */
  readonly key: string;
  /** Lets it in, or tells that its place in line was given away. */
  readonly enter: (admitted: boolean) => void;
}

/** Places that one caller may have: others find room beside those. */
const SHARE_MAX = fairnessLimits.actionShareMax * routeLimits.requestsMax;

export class RouteRequests {
  readonly #run: RunExchange;
  /** Requests in the runners, by who answers for them. */
  readonly #running = new Map<string, number>();
  #runningCount = 0;
  /** Those whose turn has not come. */
  readonly #waiting: Waiting[] = [];

  constructor(run: RunExchange) {
    this.#run = run;
  }

  /** Answers a request. Never rejects; resolves when the response begins. */
  async respond(request: RouteRequest): Promise<RouteAnswer> {
    const { caller } = request;
    const key = caller?.blame ?? "";
    if (!await this.#enter(key)) {
      return failure(overloaded(`${this.#waiting.length} requests are waiting`));
    }
    let exchange: RouteExchange;
    try {
      exchange = new RouteExchange(request);
    } catch (error) {
      this.#leave(key);
      const message = error instanceof Error ? error.message : String(error);
      return { ok: false, error: { kind: "args", message, data: null } };
    }
    const call: FunctionCall = {
      udfPath: `${request.request.method} ${requestPath(request.request)}`,
      args: {},
      identity: request.identity,
      origin: "client",
      ...(caller && { caller }),
    };
    this.#run(call, exchange).then((outcome) => {
      this.#leave(key);
      exchange.end(outcome);
    });
    return await exchange.answer;
  }

  /** Waits for its turn; `false` when too many wait already. */
  async #enter(key: string): Promise<boolean> {
    if (this.#admits(key)) {
      this.#took(key);
      return true;
    }
    if (this.#waiting.length >= routeLimits.requestsWaitingMax && !this.#giveWay(key)) return false;
    return await new Promise<boolean>((enter) => this.#waiting.push({ key, enter }));
  }

  #admits(key: string): boolean {
    return this.#runningCount < routeLimits.requestsMax && (this.#running.get(key) ?? 0) < SHARE_MAX;
  }

  #took(key: string): void {
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    this.#runningCount++;
  }

  /** Gives its place to the one whose turn is next: of the caller who has the fewest places. */
  #leave(key: string): void {
    const left = (this.#running.get(key) ?? 1) - 1;
    if (left === 0) this.#running.delete(key);
    else this.#running.set(key, left);
    this.#runningCount--;
    let next = -1;
    let fewest = Infinity;
    for (const [at, { key }] of this.#waiting.entries()) {
      const has = this.#running.get(key) ?? 0;
      if (has < fewest && this.#admits(key)) [next, fewest] = [at, has];
      if (has === 0) break;
    }
    const [waiting] = next < 0 ? [] : this.#waiting.splice(next, 1);
    if (waiting === undefined) return;
    this.#took(waiting.key);
    waiting.enter(true);
  }

  /** Takes the newest of the caller with the most out of the line, if this one has less than half of that there. */
  #giveWay(key: string): boolean {
    const counts = new Map<string, number>();
    for (const { key } of this.#waiting) counts.set(key, (counts.get(key) ?? 0) + 1);
    const [most, count] = [...counts].reduce((a, b) => b[1] > a[1] ? b : a, ["", 0]);
    if (2 * ((counts.get(key) ?? 0) + 1) >= count) return false;
    const [out] = this.#waiting.splice(this.#waiting.findLastIndex((waiting) => waiting.key === most), 1);
    out?.enter(false);
    return true;
  }
}

function failure(outcome: Outcome): RouteAnswer {
  if (outcome.ok) throw new TypeError("A success is no failure");
  return { ok: false, error: outcome.error };
}
