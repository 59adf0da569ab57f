/** How a part of the log is walked, newest run first, in steps: what is asked for, and what a step finds. */
import type { RunFilter } from "../run_filter.ts";
import type { Segment } from "./segment.ts";

export interface PartWalk {
  readonly segment: Segment;
  readonly filter: RunFilter;
  /** Numbers of the functions that pass; `null` when all do. */
  readonly functions: ReadonlySet<number> | null;
  readonly low: number;
  readonly high: number;
  /** Runs found in one step, at most. */
  readonly limit: number;
}

export interface PartStep<Run> {
  readonly runs: readonly Run[];
  /** All with larger ids, or the same one, were looked at. */
  readonly low: number;
}
