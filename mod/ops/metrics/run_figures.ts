/** Outcomes and durations of function runs by kind. Paths are not labels, because there may be thousands. */
import { endingOf, type RunEnd, type RunKind, type RunObserver } from "../../functions/host/mod.ts";
import { runEndings } from "../../functions/run_endings.ts";
import { Distribution } from "./distribution.ts";
import { Tally } from "./tally.ts";

const KINDS = ["query", "mutation", "action", "route"] as const satisfies readonly RunKind[];

/** Seconds: from cached queries to actions that run for minutes. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Calls per commit, up to the largest batch. */
const GROUP_CALLS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export class RunFigures implements RunObserver {
  readonly ends = new Tally(KINDS, runEndings);
  readonly seconds: Readonly<Record<RunKind, Distribution>> = {
    query: new Distribution(SECONDS),
    mutation: new Distribution(SECONDS),
    action: new Distribution(SECONDS),
    route: new Distribution(SECONDS),
  };
  readonly groupCalls = new Distribution(GROUP_CALLS);

  runEnded(kind: RunKind, { outcome, ms }: Pick<RunEnd, "outcome" | "ms">): void {
    this.ends.add(kind, endingOf(outcome));
    this.seconds[kind].add(ms / 1000);
  }

  groupCommitted(calls: number): void {
    this.groupCalls.add(calls);
  }
}
