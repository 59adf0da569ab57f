/** Ranges of points in time that the replica can restore. */
import type { Range, ReplicationStatus } from "../../server/stats.ts";

export interface GenerationRange extends Range {
  readonly generation: string;
}

/** A point in time in the terms of the server. */
export interface Point {
  readonly toTime: string;
  readonly generation?: string;
}

export function rangesOf(status: ReplicationStatus): readonly GenerationRange[] {
  if (!status.enabled) return [];
  return (status.generations ?? []).flatMap(({ generation, ranges }) =>
    ranges.map((range) => ({ ...range, generation }))
  );
}

/** Start and end of all ranges. Infinite without ranges. */
export function spanOf(ranges: readonly Range[]): { readonly from: number; readonly to: number } {
  return {
    from: Math.min(...ranges.map(({ fromTime }) => fromTime)),
    to: Math.max(...ranges.map(({ toTime }) => toTime)),
  };
}

/** Returns `time`, or the nearest restorable time if it is between two ranges. */
export function nearest(ranges: readonly Range[], time: number): number {
  const ends = ranges.map(({ fromTime, toTime }) => Math.max(fromTime, Math.min(toTime, time)));
  return ends.reduce((best, end) => Math.abs(end - time) < Math.abs(best - time) ? end : best);
}

export function pointAt(ranges: readonly GenerationRange[], time: number): Point {
  const at = nearest(ranges, time);
  const range = ranges.find(({ fromTime, toTime }) => at >= fromTime && at <= toTime);
  return {
    toTime: new Date(at).toISOString(),
    ...(range !== undefined && { generation: range.generation }),
  };
}
