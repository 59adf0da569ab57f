/** Metrics of a server: counters updated as events happen, and values read on demand. */
import { metricsEndpoint } from "./endpoint.ts";
import { Exposition } from "./exposition.ts";
import { LoopLag } from "./loop_lag.ts";
import { RequestFigures } from "./request_figures.ts";
import { RunFigures } from "./run_figures.ts";
import { defineMetrics, type ServerFigures } from "./server_metrics.ts";
import { Tally } from "./tally.ts";

export interface MetricsOptions {
  /** Required bearer token; `null` allows everyone. */
  readonly token: string | null;
  /** Account operations that are counted separately. */
  readonly authOperations: readonly string[];
}

/** Outcome of an account request: `refused` is a client error, `limited` a rate limit. */
const AUTH_OUTCOMES = ["success", "refused", "limited", "error"] as const;

/** Disposing of it stops the measurements. */
export class Metrics implements Disposable {
  /** Observer of function runs. */
  readonly runs = new RunFigures();
  /** Observer of HTTP requests. */
  readonly requests = new RequestFigures();
  /** Answers `GET /metrics`, including its errors. Rejects if a value cannot be read. */
  readonly respond: (request: Request) => Promise<Response>;
  readonly #exposition = new Exposition();
  readonly #auth: Tally<string, (typeof AUTH_OUTCOMES)[number]>;
  readonly #lag = new LoopLag();

  constructor({ token, authOperations }: MetricsOptions) {
    this.#auth = new Tally(authOperations, AUTH_OUTCOMES);
    this.respond = metricsEndpoint(this.#exposition, token);
  }

  /** Sets the sources of values read on demand. Call once, before the first scrape. */
  define(figures: ServerFigures): void {
    defineMetrics(this.#exposition, {
      figures,
      runs: this.runs,
      requests: this.requests.answers,
      auth: this.#auth,
      lag: this.#lag.seconds,
    });
  }

  /** Counts an account request; `operation` is one of `authOperations`. */
  countAuth(operation: string, status: number): void {
    const ending = status < 400 ? "success" : status === 429 ? "limited" : status < 500 ? "refused" : "error";
    this.#auth.add(operation, ending);
  }

  [Symbol.dispose](): void {
    this.#lag[Symbol.dispose]();
  }
}
