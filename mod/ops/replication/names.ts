/**
 * Names of the objects at a target. A listing describes a replica without reading any object: the order of segments, the ts
 * and times that they reach, and the snapshots that they continue.
 *
 *     syncline-replica.json                                  marker of a replica
 *     owners/000001.json                                     the server that ships; the highest number owns the target
 *     tried/<at>-<random>                                    temporary object of a location test
 *     generations/<generation>/generation.json               its start: reason, time and ts
 *     generations/<generation>/snapshots/<ts>_<seq>_<at>_<sum>.tar.zst
 *     generations/<generation>/segments/<ts>-<ts>_<seq>-<seq>_<at>-<at>_<sum>-<sum>.<level>.zst
 */

export const MARKER = "syncline-replica.json";
export const GENERATIONS = "generations/";
export const OWNERS = "owners/";
/** Prefix of the objects that location tests write. No replica reads them. */
export const PROBES = "tried/";

/** A snapshot: the database after journal row `seq`. */
export interface SnapshotName {
  readonly kind: "snapshot";
  readonly generation: string;
  readonly ts: number;
  readonly seq: number;
  /** When it was taken, ms since the epoch. */
  readonly at: number;
  /** Chained sum of row `seq`. */
  readonly sum: string;
}

/** A segment: journal rows in their order. */
export interface SegmentName {
  readonly kind: "segment";
  readonly generation: string;
  /** Its first and last commit. Without a commit, the first is one above the last. */
  readonly fromTs: number;
  readonly toTs: number;
  readonly fromSeq: number;
  readonly toSeq: number;
  /** The earliest and latest time of its commits, ms since the epoch. */
  readonly minAt: number;
  readonly maxAt: number;
  /** Chained checksums of the row before it and of its last row. */
  readonly prev: string;
  readonly sum: string;
  /** Number of merges that produced it. */
  readonly level: number;
}

export type ReplicaName = SnapshotName | SegmentName;

const generationText = "[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}";
const GENERATION = new RegExp(`^${generationText}$`);
const SNAPSHOT = new RegExp(
  `^generations/(${generationText})/snapshots/(\\d{12,16})_(\\d{12,16})_(\\d{13,15})_([0-9a-f]{32})\\.tar\\.zst$`,
);
const SEGMENT = new RegExp(
  `^generations/(${generationText})/segments/(\\d{12,16})-(\\d{12,16})_(\\d{12,16})-(\\d{12,16})_(\\d{13,15})-(\\d{13,15})_` +
    "([0-9a-f]{32})-([0-9a-f]{32})\\.(\\d)\\.zst$",
);
const PROBE = /^tried\/(\d{13,15})-/;
const OWNER = /^owners\/(\d{6,15})\.json$/;

export function isGeneration(text: string): boolean {
  return GENERATION.test(text);
}

export function generationFile(generation: string): string {
  return `${GENERATIONS}${generation}/generation.json`;
}

export function ownerFile(claim: number): string {
  return `${OWNERS}${String(claim).padStart(6, "0")}.json`;
}

/** Returns the number of a claim; `null` for other names. */
export function claimOf(name: string): number | null {
  const [, claim] = OWNER.exec(name) ?? [];
  return claim === undefined ? null : Number(claim);
}

export function probeFile(at: number, random: string): string {
  return `${PROBES}${time(at)}-${random}`;
}

/** Returns the time of a location test, ms since the epoch; 0 for a name without it. */
export function probedAt(name: string): number {
  return Number(PROBE.exec(name)?.[1] ?? 0);
}

export function snapshotFile({ generation, ts, seq, at, sum }: Omit<SnapshotName, "kind">): string {
  return `${GENERATIONS}${generation}/snapshots/${digits(ts)}_${digits(seq)}_${time(at)}_${sum}.tar.zst`;
}

export function segmentFile(segment: Omit<SegmentName, "kind">): string {
  const { generation, fromTs, toTs, fromSeq, toSeq, minAt, maxAt, prev, sum, level } = segment;
  return `${GENERATIONS}${generation}/segments/${digits(fromTs)}-${digits(toTs)}_${digits(fromSeq)}-${
    digits(toSeq)
  }_` +
    `${time(minAt)}-${time(maxAt)}_${prev}-${sum}.${level}.zst`;
}

/** Parses a name; returns `null` for names of other objects. */
export function parseName(name: string): ReplicaName | null {
  const segment = SEGMENT.exec(name);
  if (segment !== null) {
    const [, generation = "", fromTs, toTs, fromSeq, toSeq, minAt, maxAt, prev = "", sum = "", level] =
      segment;
    return {
      kind: "segment",
      generation,
      fromTs: Number(fromTs),
      toTs: Number(toTs),
      fromSeq: Number(fromSeq),
      toSeq: Number(toSeq),
      minAt: Number(minAt),
      maxAt: Number(maxAt),
      prev,
      sum,
      level: Number(level),
    };
  }
  const [, generation, ts, seq, at, sum = ""] = SNAPSHOT.exec(name) ?? [];
  if (generation === undefined) return null;
  return { kind: "snapshot", generation, ts: Number(ts), seq: Number(seq), at: Number(at), sum };
}

function digits(number: number): string {
  return String(number).padStart(12, "0");
}

function time(ms: number): string {
  return String(Math.max(0, Math.floor(ms))).padStart(13, "0");
}
