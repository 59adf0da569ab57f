/** What runs at a follower, told to the leader now and then, so that logs, stats and metrics are those of all processes. */
import type { FollowerRun, LeaderLink } from "../../cluster/mod.ts";
import type { RunEnd, RunKind, RunObserver } from "../../functions/host/mod.ts";
import type { Log } from "../../kit/log.ts";
import { workerLimits } from "../limits.ts";

type Way = Pick<LeaderLink, "runs" | "unsentBytes">;

export class RunReport implements RunObserver, Disposable {
  readonly #way: Way;
  readonly #log: Log;
  #runs: FollowerRun[] = [];
  #cached: string[] = [];
  #left = 0;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(way: Way, log: Log) {
    this.#way = way;
    this.#log = log;
    this.#timer = setInterval(() => this.flush(), workerLimits.reportMs);
  }

  runEnded(kind: RunKind, { call: { udfPath, identity }, outcome, ...end }: RunEnd): void {
    if (this.#runs.length >= workerLimits.reportRunsMax) return void this.#left++;
    const { logLines } = outcome;
    const error = outcome.ok ? null : outcome.error;
    const { claims: _, ...caller } = identity;
    this.#runs.push({ ...end, kind, udfPath, identity: caller, error, logLines });
  }

  cacheHit(udfPath: string): void {
    if (this.#cached.length < workerLimits.reportRunsMax) this.#cached.push(udfPath);
  }

  flush(): void {
    if (this.#left > 0) {
      this.#log("warn", "Runs were not told to the process that keeps the log", { runs: this.#left });
      this.#left = 0;
    }
    if (this.#runs.length === 0 && this.#cached.length === 0) return;
    // What is told of runs must not stand in the way of what runs.
    if (this.#way.unsentBytes > workerLimits.reportBytesBehind) return;
    this.#way.runs(this.#runs, this.#cached);
    this.#runs = [];
    this.#cached = [];
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.flush();
  }
}
