/** Restorable points of a replica, derived from the names of its objects alone. */
import { LocationError } from "../../kit/locations/object_store.ts";
import type { TargetObject } from "./replica_target.ts";
import { parseName, type SegmentName, type SnapshotName } from "./names.ts";

export type Snapshot = SnapshotName & { readonly file: TargetObject };
export type Segment = SegmentName & { readonly file: TargetObject };

/** Points that can be restored: every ts and every time in between. */
export interface RestorableRange {
  readonly fromTs: number;
  readonly toTs: number;
  /** ms since the epoch. */
  readonly fromTime: number;
  readonly toTime: number;
}

/** One generation at a target. Both lists are in the order of their rows. */
export interface Generation {
  readonly name: string;
  readonly snapshots: readonly Snapshot[];
  readonly segments: readonly Segment[];
  readonly ranges: readonly RestorableRange[];
}

/** Requested point; the newest state without a ts or time. */
export interface RestorePoint {
  readonly generation?: string | undefined;
  readonly toTs?: number | undefined;
  /** ms since the epoch. */
  readonly toTime?: number | undefined;
}

/** Plan of a restore: a snapshot, and the segments that follow it. */
export interface RestorePlan {
  readonly generation: string;
  readonly snapshot: Snapshot;
  readonly segments: readonly Segment[];
  /** The commit it ends with; `null` when it depends on the rows of the last segment, because a time was requested. */
  readonly toTs: number | null;
  readonly toTime: number | null;
  /** Whether a point was requested; otherwise it is the newest. */
  readonly named: boolean;
  /** Bytes to download, and journal rows to apply. */
  readonly bytes: number;
  readonly rows: number;
}

/** Returns the generations in a listing, newest last. Ignores other names. */
export function generationsOf(objects: Iterable<TargetObject>): Generation[] {
  const found = new Map<string, { snapshots: Snapshot[]; segments: Segment[] }>();
  for (const file of objects) {
    const name = parseName(file.name);
    if (name === null) continue;
    let of = found.get(name.generation);
    if (of === undefined) found.set(name.generation, of = { snapshots: [], segments: [] });
    if (name.kind === "snapshot") of.snapshots.push({ ...name, file });
    else of.segments.push({ ...name, file });
  }
  return [...found].sort(([a], [b]) => a < b ? -1 : 1).map(([name, { snapshots, segments }]) => {
    snapshots.sort((a, b) => a.seq - b.seq || a.at - b.at);
    segments.sort(inOrder);
    return { name, snapshots, segments, ranges: rangesOf(snapshots, segments) };
  });
}

/** Of two segments with the same start, the longer comes first. */
function inOrder(a: Segment, b: Segment): number {
  return a.fromSeq - b.fromSeq || b.toSeq - a.toSeq || b.level - a.level;
}

/** Returns the segments that follow a snapshot, up to the first gap. */
export function chainFrom(
  snapshot: Pick<SnapshotName, "seq" | "sum">,
  segments: readonly Segment[],
): Segment[] {
  const starts = new Map<number, Segment[]>();
  for (const segment of segments) {
    const list = starts.get(segment.fromSeq);
    if (list === undefined) starts.set(segment.fromSeq, [segment]);
    else list.push(segment);
  }
  const follow = (begin: Segment | undefined): Segment[] => {
    const chain: Segment[] = [];
    let { seq, sum } = snapshot;
    const next = () => starts.get(seq + 1)?.find(({ prev, toSeq }) => prev === sum && toSeq > seq);
    for (let segment = begin ?? next(); segment !== undefined; segment = next()) {
      chain.push(segment);
      ({ toSeq: seq, sum } = segment);
    }
    return chain;
  };
  const chain = follow(undefined);
  // The snapshot may be in the middle of a merged segment whose pieces were removed, at least partly.
  const around = segments.reduce<Segment | undefined>(
    (longest, segment) =>
      segment.fromSeq <= snapshot.seq && segment.toSeq > (longest?.toSeq ?? snapshot.seq) ? segment : longest,
    undefined,
  );
  if (around === undefined) return chain;
  const other = follow(around);
  return (other.at(-1)?.toSeq ?? 0) > (chain.at(-1)?.toSeq ?? snapshot.seq) ? other : chain;
}

function rangesOf(snapshots: readonly Snapshot[], segments: readonly Segment[]): RestorableRange[] {
  const ranges: (RestorableRange & { readonly toSeq: number })[] = [];
  for (const snapshot of snapshots) {
    const before = ranges.at(-1);
    if (before !== undefined && snapshot.seq <= before.toSeq) {
      const toTime = Math.max(before.toTime, snapshot.at);
      ranges[ranges.length - 1] = { ...before, toTime };
      continue;
    }
    const chain = chainFrom(snapshot, segments);
    const last = chain.at(-1);
    ranges.push({
      fromTs: snapshot.ts,
      toTs: last?.toTs ?? snapshot.ts,
      fromTime: snapshot.at,
      toTime: chain.reduce((latest, { maxAt }) => Math.max(latest, maxAt), snapshot.at),
      toSeq: last?.toSeq ?? snapshot.seq,
    });
  }
  return ranges.map(({ toSeq: _, ...range }) => range);
}

/** Returns the gap after the last restorable row; `null` if no rows are missing. */
export function gapOf({ snapshots, segments }: Generation): { readonly afterTs: number } | null {
  const last = segments.reduce<Segment | undefined>(
    (a, b) => a === undefined || b.toSeq > a.toSeq ? b : a,
    undefined,
  );
  const newest = snapshots.at(-1);
  if (last === undefined || newest === undefined) return null;
  const chain = chainFrom(newest, segments);
  const reached = chain.at(-1) ?? newest;
  const reachedSeq = chain.at(-1)?.toSeq ?? newest.seq;
  if (last.toSeq <= reachedSeq) return null;
  return { afterTs: reached.kind === "segment" ? reached.toTs : reached.ts };
}

/**
 * Returns the gaps before snapshots: points inside them cannot be restored. Rows that a snapshot contains and that are still
 * being shipped are not a gap.
 */
export function gapsBefore(
  { snapshots, segments }: Generation,
): { readonly afterTs: number; readonly ts: number }[] {
  const gaps: { readonly afterTs: number; readonly ts: number }[] = [];
  let reached: { readonly seq: number; readonly ts: number } | null = null;
  for (const snapshot of snapshots) {
    const before = reached;
    if (before !== null && snapshot.seq > before.seq && segments.some(({ toSeq }) => toSeq > before.seq)) {
      gaps.push({ afterTs: before.ts, ts: snapshot.ts });
    }
    const last = chainFrom(snapshot, segments).at(-1);
    const end = last === undefined ? snapshot : { seq: last.toSeq, ts: last.toTs };
    if (before === null || end.seq > before.seq) reached = end;
  }
  return gaps;
}

/** Plans the restore of a point. Throws a `LocationError` with the restorable ranges if the point is not among them. */
export function planRestore(
  generations: readonly Generation[],
  point: RestorePoint,
  { now, location }: { readonly now: number; readonly location: string },
): RestorePlan {
  const asked = point.generation === undefined
    ? generations
    : generations.filter(({ name }) => name === point.generation);
  const nothing = (what: string) =>
    new LocationError("asked", `${what}. ${rangesText(generations, location)}`);
  if (generations.length === 0) throw nothing("There is nothing to restore");
  if (asked.length === 0) throw nothing(`There is no generation "${point.generation}"`);
  if (point.toTime !== undefined && point.toTime > now) throw nothing("The requested time is in the future");
  for (const generation of asked.toReversed()) {
    if (point.toTs === undefined && point.toTime === undefined) {
      if (generation.snapshots.length === 0) continue;
      const gap = gapOf(generation);
      if (gap !== null) {
        throw nothing(
          `Segments are missing in generation ${generation.name}: the newest point that can be reached is ts ` +
            `${gap.afterTs}, which --to-ts ${gap.afterTs} restores`,
        );
      }
    }
    const plan = planIn(generation, point);
    if (plan !== null) return plan;
  }
  throw nothing(
    point.toTs !== undefined
      ? `Commit ${point.toTs} cannot be restored`
      : point.toTime !== undefined
      ? `The state of ${new Date(point.toTime).toISOString()} cannot be restored`
      : "There is no snapshot yet",
  );
}

function planIn(generation: Generation, { toTs, toTime }: RestorePoint): RestorePlan | null {
  // The newest snapshot before the point, so that fewer rows are read.
  for (const snapshot of generation.snapshots.toReversed()) {
    if (toTs !== undefined && snapshot.ts > toTs) continue;
    if (toTime !== undefined && snapshot.at > toTime) continue;
    const chain = chainFrom(snapshot, generation.segments);
    const reach = chain.at(-1)?.toTs ?? snapshot.ts;
    if (toTs !== undefined && reach < toTs) continue;
    let segments: Segment[] = chain;
    if (toTs !== undefined) segments = chain.slice(0, 1 + chain.findIndex((segment) => segment.toTs >= toTs));
    if (toTs !== undefined && toTs === snapshot.ts) segments = [];
    if (toTime !== undefined) {
      // The newest commit that is not later, also after clock jumps.
      segments = chain.slice(0, 1 + chain.findLastIndex(({ minAt }) => minAt <= toTime));
      const complete = segments.length === chain.length && (chain.at(-1)?.maxAt ?? 0) <= toTime;
      if (complete && !isNewest(generation, snapshot)) {
        // Later rows are missing here: only a later snapshot has the state of that time.
        const gap = gapOf({ ...generation, snapshots: [snapshot] });
        if (gap !== null) continue;
      }
    }
    const bytes = segments.reduce((sum, { file }) => sum + file.size, snapshot.file.size);
    const rows = segments.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0);
    return {
      generation: generation.name,
      snapshot,
      segments,
      toTs: toTime === undefined ? toTs ?? reach : null,
      toTime: toTime ?? null,
      named: toTs !== undefined || toTime !== undefined,
      bytes,
      rows,
    };
  }
  return null;
}

function isNewest({ snapshots }: Generation, snapshot: Snapshot): boolean {
  return snapshots.at(-1) === snapshot;
}

/** Returns the restorable ranges as readable lines. */
export function rangesText(generations: readonly Generation[], location: string): string {
  const lines = generations.flatMap(({ name, ranges }) =>
    ranges.map(({ fromTs, toTs, fromTime, toTime }) =>
      `  generation ${name}: ts ${fromTs} to ${toTs}, ${new Date(fromTime).toISOString()} to ${
        new Date(toTime).toISOString()
      }`
    )
  );
  return lines.length === 0
    ? `"${location}" has no snapshot that could be restored`
    : `Restorable from "${location}":\n${lines.join("\n")}`;
}
