/** Metrics, loaded only with `--metrics` or `--otlp-endpoint`: counters updated as events happen, and values read on demand. */
import { createHash, timingSafeEqual } from "node:crypto";
import { MethodNotAllowedError, ServiceError } from "../../errors.ts";
import { errorResponse } from "../../kit/error_response.ts";
import { opsLimits } from "../limits.ts";
import { Histogram, type RunTotals, Tally } from "../stats/mod.ts";
import { Exposition } from "./exposition.ts";
import { defineMetrics, type ServerFigures } from "./server_metrics.ts";

export type { MetricValues } from "./exposition.ts";
export type { ServerFigures } from "./server_metrics.ts";

const ROUTES = [
  "call",
  "sync",
  "auth",
  "storage",
  "admin",
  "health",
  "metrics",
  "dashboard",
  "app",
  "unknown",
] as const;
const STATUSES = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const;

export type RouteClass = (typeof ROUTES)[number];
type StatusClass = (typeof STATUSES)[number];

/** HTTP requests by route class and status class. */
class RequestFigures {
  readonly answers = new Tally(ROUTES, STATUSES);

  /** Counts a response and returns it. `null`: the request was rejected before it had a path. */
  count<Answer extends Response | Promise<Response>>(path: string | null, answer: Answer): Answer {
    const route = path === null ? "unknown" : routeClass(path);
    if (answer instanceof Response) this.answers.add(route, statusClass(answer.status));
    else {
      (answer as Promise<Response>).then(
        ({ status }) => this.answers.add(route, statusClass(status)),
        () => this.answers.add(route, "5xx"),
      );
    }
    return answer;
  }

  /** Counts requests answered by another process; `path` identifies the route class. */
  answeredElsewhere(
    path: string,
    { status, count }: { readonly status: number; readonly count: number },
  ): void {
    this.answers.add(routeClass(path), statusClass(status), count);
  }
}

/** Returns the route class of a normalized path. */
export function routeClass(path: string): RouteClass {
  const [, first, second] = path.split("/", 4);
  if (first === "metrics" && second === undefined) return "metrics";
  if (first === "_") return "dashboard";
  if (first !== "api") return "app";
  switch (second) {
    case "query":
    case "mutation":
    case "action":
      return "call";
    case "sync":
    case "auth":
    case "storage":
    case "admin":
    case "health":
      return second;
    default:
      return "unknown";
  }
}

function statusClass(status: number): StatusClass {
  return STATUSES[Math.floor(status / 100) - 1] ?? "5xx";
}

export interface MetricsOptions {
  /** Required bearer token; `null` allows everyone. */
  readonly token: string | null;
  /** Account operations that are counted separately. */
  readonly authOperations: readonly string[];
  /** Counts of function runs. */
  readonly runs: RunTotals;
}

/** Bounds of the event loop lag. */
const LAG_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const BEARER = /^Bearer +([^\s]+) *$/i;

/** Outcome of an account request: `refused` is a client error, `limited` a rate limit. */
const AUTH_OUTCOMES = ["success", "refused", "limited", "error"] as const;

/** Disposing of it stops the measurements. */
export class Metrics implements Disposable {
  /** Observer of HTTP requests. */
  readonly requests = new RequestFigures();
  /** Answers `GET /metrics`, including its errors. Rejects if a value cannot be read. */
  readonly respond: (request: Request) => Promise<Response>;
  readonly #runs: RunTotals;
  readonly #exposition = new Exposition();
  readonly #auth: Tally<string, (typeof AUTH_OUTCOMES)[number]>;
  readonly #lag = new LoopLag();

  constructor({ token, authOperations, runs }: MetricsOptions) {
    this.#runs = runs;
    this.#auth = new Tally(authOperations, AUTH_OUTCOMES);
    this.respond = metricsEndpoint(this.#exposition, token);
  }

  /** Sets the sources of values read on demand. Call once, before the first scrape. */
  define(figures: ServerFigures): void {
    defineMetrics(this.#exposition, {
      figures,
      runs: this.#runs,
      requests: this.requests.answers,
      auth: this.#auth,
      lag: this.#lag.seconds,
    });
  }

  /** Reads all metrics, for other formats. Rejects if one cannot be read. */
  values(): ReturnType<Exposition["values"]> {
    return this.#exposition.values();
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

/** Measures the delay of timers in the main process until disposed. */
class LoopLag implements Disposable {
  readonly seconds = new Histogram(LAG_SECONDS);
  #timer: ReturnType<typeof setTimeout>;

  constructor() {
    this.#timer = this.#later();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #later(): ReturnType<typeof setTimeout> {
    const due = performance.now() + opsLimits.loopLagSampleMs;
    return setTimeout(() => {
      this.seconds.add(Math.max(0, performance.now() - due) / 1000);
      this.#timer = this.#later();
    }, opsLimits.loopLagSampleMs);
  }
}

/** Answers `GET /metrics` (ME1 to ME4). `token`: required bearer token; `null` allows everyone. */
function metricsEndpoint(
  exposition: Exposition,
  token: string | null,
): (request: Request) => Promise<Response> {
  const expected = token === null ? null : digest(token);
  return async (request) => {
    const given = BEARER.exec(request.headers.get("authorization") ?? "")?.[1];
    if (expected !== null && (given === undefined || !timingSafeEqual(digest(given), expected))) {
      const refusal = new ServiceError(
        "invalid_token",
        "The metrics require the token set with --metrics-token",
      );
      return errorResponse(refusal, { "WWW-Authenticate": "Bearer" });
    }
    if (request.method !== "GET" && request.method !== "HEAD") {
      return errorResponse(new MethodNotAllowedError("GET, HEAD"));
    }
    const headers = {
      "Content-Type": exposition.contentType,
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
    };
    return new Response(await exposition.text(), { headers });
  };
}

/** Fixed length, so that comparing does not leak the token's length. */
function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
