/** Reports a follower's runs to the leader, so that logs, stats, metrics and traces cover all processes. */
import type { FollowerRun, LeaderConnection } from "../../cluster/mod.ts";
import { type EndedRequest, epochMs, type RequestSpans, RequestTracer } from "../../functions/call_trace.ts";
import type { RunEnd, RunKind, RunObserver } from "../../functions/host/mod.ts";
import type { Log, LoggedLine } from "../../kit/log.ts";
import { telemetryLimits } from "../../ops/limits.ts";
import { workerLimits } from "../limits.ts";
import type { WorkerTelemetry } from "../workers/boot.ts";

/** Paths below `/api` that a worker answers itself. */
const PARTS = new Set(["query", "mutation", "action", "sync"]);

interface RunReporterOptions {
  readonly log: Log;
  readonly telemetry: WorkerTelemetry | null;
}

export class RunReporter implements RunObserver, Disposable {
  /** `null` if traces are not exported. */
  readonly spans: RequestSpans | null;
  readonly #connection: Pick<LeaderConnection, "report" | "unsentBytes">;
  readonly #log: Log;
  #traced: EndedRequest[] = [];
  #logged: LoggedLine[] = [];
  /** Removes the receiver of the log. */
  readonly #ends = new DisposableStack();
  #runs: FollowerRun[] = [];
  #cached: string[] = [];
  /** Answers by path and status. Both have few values. */
  #requests = new Map<string, { readonly url: string; readonly status: number; count: number }>();
  /** Characters of all lists. */
  #chars = 0;
  /** Items over the limits since the last log message about them. */
  #dropped = { runs: 0, spans: 0, logLines: 0 };
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(
    connection: Pick<LeaderConnection, "report" | "unsentBytes">,
    { log, telemetry }: RunReporterOptions,
  ) {
    this.#connection = connection;
    this.#log = log;
    const sample = telemetry?.sample ?? null;
    this.spans = sample === null ? null : new RequestTracer(sample, (request) => {
      if (this.#admits(this.#traced, request.name.length)) this.#traced.push(request);
      else this.#dropped.spans++;
    });
    if (telemetry?.logs === true) {
      const receiver = (line: LoggedLine) => this.#forwardLine(line);
      log.receivers?.add(receiver);
      this.#ends.defer(() => log.receivers?.delete(receiver));
    }
    this.#timer = setInterval(() => this.flush(), workerLimits.reportMs);
  }

  runEnded(kind: RunKind, { call: { udfPath, identity, trace }, outcome, ...end }: RunEnd): void {
    const { logLines } = outcome;
    const error = outcome.ok ? null : outcome.error;
    const texts = [udfPath, error?.message ?? "", error?.stack ?? "", ...logLines];
    if (!this.#admits(this.#runs, charsOf(texts))) return void this.#dropped.runs++;
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

  #forwardLine(line: LoggedLine): void {
    const short = shortened(line);
    const texts = [short.message, ...Object.entries(short.fields).flat().map(String)];
    if (this.#admits(this.#logged, charsOf(texts))) this.#logged.push(short);
    else this.#dropped.logLines++;
  }

  /** Whether the next report has room for an item. Otherwise it is left out: another report follows soon. */
  #admits({ length }: readonly unknown[], chars: number): boolean {
    const { reportRunsMax, reportCharsMax } = workerLimits;
    if (length >= reportRunsMax || this.#chars + chars > reportCharsMax) return false;
    this.#chars += chars;
    return true;
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
    const lists = [this.#runs, this.#cached, this.#traced, this.#logged];
    if (this.#requests.size === 0 && lists.every(({ length }) => length === 0)) return;
    // Reports must not delay other messages.
    if (this.#connection.unsentBytes > workerLimits.reportBytesBehind) return;
    this.#connection.report({
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
    this.#logDropped();
  }

  /** Called after a report, so that the next one has room for the line. */
  #logDropped(): void {
    const dropped = Object.entries(this.#dropped).filter(([, count]) => count > 0);
    if (dropped.length === 0) return;
    this.#dropped = { runs: 0, spans: 0, logLines: 0 };
    this.#log("warn", "Dropped run reports because too many were pending", Object.fromEntries(dropped));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#ends.dispose();
    this.flush();
  }
}

/** Returns a line with strings of the length that the leader exports. */
function shortened({ message, fields, ...line }: LoggedLine): LoggedLine {
  const short = (text: string) => text.slice(0, telemetryLimits.logCharsMax);
  const shortFields = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === "string" ? short(value) : value,
  ]);
  return { ...line, message: short(message), fields: Object.fromEntries(shortFields) };
}

function charsOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}
