/** Outcomes and durations of function runs by kind since the start. Paths are not labels, because there may be thousands. */
import type { RunKind } from "../../functions/host/mod.ts";
import { type RunEnding, runEndings } from "../../functions/run_endings.ts";
import { Histogram, Tally } from "./counters.ts";

const KINDS = ["query", "mutation", "action", "route"] as const satisfies readonly RunKind[];

/** Seconds: from cached queries to actions that run for minutes. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Calls per commit, up to the largest batch. */
const GROUP_CALLS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export class RunTotals {
  readonly ends = new Tally(KINDS, runEndings);
  readonly seconds: Readonly<Record<RunKind, Histogram>> = {
    query: new Histogram(SECONDS),
    mutation: new Histogram(SECONDS),
    action: new Histogram(SECONDS),
    route: new Histogram(SECONDS),
  };
  readonly groupCalls = new Histogram(GROUP_CALLS);

  add(kind: RunKind, ending: RunEnding, ms: number): void {
    this.ends.add(kind, ending);
    this.seconds[kind].add(ms / 1000);
  }
}
