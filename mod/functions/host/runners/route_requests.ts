/** Finds the app's routes and limits their requests in the runners. Waiting requests are queued fairly by caller. */
import { requestPath } from "../../../kit/http_request.ts";
import { fairnessLimits, routeLimits } from "../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import { overloaded } from "../outcomes.ts";
import { type RouteAnswer, RouteExchange, type RouteRequest } from "./route_exchange.ts";
import type { RouteTable } from "./route_table.ts";

/** Handles a request in a runner, like an action. Never rejects. */
export type RunExchange = (call: FunctionCall, exchange: RouteExchange) => Promise<Outcome>;

interface Waiting {
  /** Key of the caller. */
  readonly key: string;
  /** Admits the request, or reports that its slot was given to another caller. */
  readonly enter: (admitted: boolean) => void;
}

/** Slots that one caller may use. */
const SHARE_MAX = fairnessLimits.actionShareMax * routeLimits.requestsMax;

export class RouteRequests {
  readonly #run: RunExchange;
  readonly #routes: () => RouteTable;
  /** Requests in the runners, by caller. */
  readonly #running = new Map<string, number>();
  #runningCount = 0;
  readonly #waiting: Waiting[] = [];

  constructor({ routes, run }: { readonly routes: () => RouteTable; readonly run: RunExchange }) {
    this.#routes = routes;
    this.#run = run;
  }

  /** Returns the key of the app's route for a request, or `null`. `pathname` is the raw path of the URL. */
  find(method: string, pathname: string): string | null {
    return this.#routes().find(method, pathname);
  }

  /** Handles a request. Resolves when the response starts. Never rejects. */
  async respond(request: RouteRequest): Promise<RouteAnswer> {
    const { caller, trace } = request;
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
      ...(trace && { trace }),
    };
    this.#run(call, exchange).then((outcome) => {
      this.#leave(key);
      exchange.end(outcome);
    });
    return await exchange.answer;
  }

  /** Waits for a slot. Returns `false` if the queue is full. */
  async #enter(key: string): Promise<boolean> {
    if (this.#admits(key)) {
      this.#took(key);
      return true;
    }
    if (this.#waiting.length >= routeLimits.requestsWaitingMax && !this.#evictFor(key)) return false;
    return await new Promise<boolean>((enter) => this.#waiting.push({ key, enter }));
  }

  #admits(key: string): boolean {
    return this.#runningCount < routeLimits.requestsMax && (this.#running.get(key) ?? 0) < SHARE_MAX;
  }

  #took(key: string): void {
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    this.#runningCount++;
  }

  /** Passes its slot to the next request: that of the caller with the fewest slots. */
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

  /** Evicts the newest request of the caller with the most queued, if this caller has less than half as many. */
  #evictFor(key: string): boolean {
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
