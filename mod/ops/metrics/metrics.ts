/** The metrics of one server: what is counted as it happens, and what is read of its parts when somebody asks. */
import { metricsEndpoint } from "./endpoint.ts";
import { Exposition } from "./exposition.ts";
import { LoopLag } from "./loop_lag.ts";
import { RequestFigures } from "./request_figures.ts";
import { RunFigures } from "./run_figures.ts";
import { defineMetrics, type ServerFigures } from "./server_metrics.ts";
import { Tally } from "./tally.ts";

export interface MetricsOptions {
  /** What readers have to show; `null`: everybody may read. */
  readonly token: string | null;
  /** Requests to the accounts that are told apart. */
  readonly authOperations: readonly string[];
}

/** How a request to the accounts ended: `refused` is the fault of who asked, `limited` came too often. */
const AUTH_ENDINGS = ["success", "refused", "limited", "error"] as const;

/** Disposing of it ends the measuring. */
export class Metrics implements Disposable {
  /** To be told of each run of a function. */
  readonly runs = new RunFigures();
  /** To be told of each request. */
  readonly requests = new RequestFigures();
  /** Answers `GET /metrics`, its errors included. Rejects when a figure cannot be read. */
  readonly respond: (request: Request) => Promise<Response>;
  readonly #exposition = new Exposition();
  readonly #auth: Tally<string, (typeof AUTH_ENDINGS)[number]>;
  readonly #lag = new LoopLag();

  constructor({ token, authOperations }: MetricsOptions) {
    this.#auth = new Tally(authOperations, AUTH_ENDINGS);
    this.respond = metricsEndpoint(this.#exposition, token);
  }

  /** Names what the rest is read from. To be called once, before anybody reads. */
  define(figures: ServerFigures): void {
    defineMetrics(this.#exposition, {
      figures,
      runs: this.runs,
      requests: this.requests.answers,
      auth: this.#auth,
      lag: this.#lag.seconds,
    });
  }

  /** Counts an answered request to the accounts; `operation` is one of those named at the beginning. */
  countAuth(operation: string, status: number): void {
    const ending = status < 400 ? "success" : status === 429 ? "limited" : status < 500 ? "refused" : "error";
    this.#auth.add(operation, ending);
  }

  [Symbol.dispose](): void {
    this.#lag[Symbol.dispose]();
  }
}
