/** Reports a follower's runs to the leader, so that logs, stats, metrics and traces cover all processes. */
import type { FollowerRun, LeaderConnection } from "../../cluster/mod.ts";
import { type EndedRequest, epochMs, type RequestSpans, RequestTracer } from "../../functions/call_trace.ts";
import type { RunEnd, RunKind, RunObserver } from "../../functions/host/mod.ts";
import type { Log, LoggedLine } from "../../kit/log.ts";
import { workerLimits } from "../limits.ts";
import type { WorkerTelemetry } from "../workers/boot.ts";

type Way = Pick<LeaderConnection, "report" | "unsentBytes">;

/** Paths below `/api` that a worker answers itself. */
const PARTS = new Set(["query", "mutation", "action", "sync"]);

export interface RunReporterOptions {
  readonly log: Log;
  readonly telemetry: WorkerTelemetry | null;
}

export class RunReporter implements RunObserver, Disposable {
  /** `null` if traces are not exported. */
  readonly spans: RequestSpans | null;
  readonly #way: Way;
  readonly #log: Log;
  #traced: EndedRequest[] = [];
  #logged: LoggedLine[] = [];
  /** Removes the receiver of the log. */
  readonly #ends = new DisposableStack();
  #runs: FollowerRun[] = [];
  #cached: string[] = [];
  /** Answers by path and status. Both have few values. */
  #requests = new Map<string, { readonly url: string; readonly status: number; count: number }>();
  #chars = 0;
  #left = 0;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(way: Way, { log, telemetry }: RunReporterOptions) {
    this.#way = way;
    this.#log = log;
    const sample = telemetry?.sample ?? null;
    this.spans = sample === null
      ? null
      : new RequestTracer(sample, (request) => this.#keep(this.#traced, request));
    if (telemetry?.logs === true) {
      const copy = (line: LoggedLine) => this.#keep(this.#logged, line);
      log.copies?.add(copy);
      this.#ends.defer(() => log.copies?.delete(copy));
    }
    this.#timer = setInterval(() => this.flush(), workerLimits.reportMs);
  }

  runEnded(kind: RunKind, { call: { udfPath, identity, trace }, outcome, ...end }: RunEnd): void {
    const { logLines } = outcome;
    const chars = logLines.reduce((sum, line) => sum + line.length, 0);
    const { reportRunsMax, reportCharsMax } = workerLimits;
    if (this.#runs.length >= reportRunsMax || this.#chars + chars > reportCharsMax) return void this.#left++;
    this.#chars += chars;
    const error = outcome.ok ? null : outcome.error;
    const { claims: _claims, key: _key, ...caller } = identity;
    this.#runs.push({
      ...end,
      kind,
      udfPath,
      identity: caller,
      error,
      logLines,
      ...(trace && { trace }),
      endedAt: epochMs(),
    });
  }

  cacheHit(udfPath: string): void {
    if (this.#cached.length < workerLimits.reportRunsMax) this.#cached.push(udfPath);
  }

  /** Counts a request that is answered here. */
  answered(pathname: string, answer: Response | Promise<Response>): void {
    if (answer instanceof Response) this.#count(pathname, answer.status);
    else answer.then(({ status }) => this.#count(pathname, status), () => this.#count(pathname, 500));
  }

  /** Items over the limit are left out: the next report follows soon. */
  #keep<Item>(list: Item[], item: Item): void {
    if (list.length < workerLimits.reportRunsMax) list.push(item);
    else this.#left++;
  }

  #count(pathname: string, status: number): void {
    const [, first = "", second = ""] = pathname.split("/", 3);
    const part = first === "api" ? `/api/${PARTS.has(second) ? second : ""}` : first === "_" ? "/_/" : "/";
    const key = `${status} ${part}`;
    const known = this.#requests.get(key);
    if (known === undefined) this.#requests.set(key, { url: `http://worker${part}`, status, count: 1 });
    else known.count++;
  }

  flush(): void {
    if (this.#left > 0) {
      const runs = this.#left;
      this.#left = 0;
      this.#log("warn", "Dropped run reports because too many were pending", { runs });
    }
    const lists = [this.#runs, this.#cached, this.#traced, this.#logged];
    if (this.#requests.size === 0 && lists.every(({ length }) => length === 0)) return;
    // Reports must not delay other messages.
    if (this.#way.unsentBytes > workerLimits.reportBytesBehind) return;
    this.#way.report({
      runs: this.#runs,
      cached: this.#cached,
      requests: [...this.#requests.values()],
      traced: this.#traced,
      logged: this.#logged,
    });
    this.#runs = [];
    this.#cached = [];
    this.#traced = [];
    this.#logged = [];
    this.#chars = 0;
    this.#requests.clear();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#ends.dispose();
    this.flush();
  }
}
