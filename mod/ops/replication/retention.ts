/** Removes from a target what no point needs any more that restores are to reach. */
import type { Generation } from "./history.ts";
import { generationFile } from "./names.ts";
import type { ReplicaTarget, TargetObject } from "./target/replica_target.ts";

export interface SweepOptions {
  readonly generations: readonly Generation[];
  /** The generation that is being written; it is never removed as a whole. */
  readonly current: string | null;
  /** Points before this time need not be reached, ms since the epoch. */
  readonly before: number;
  /** What is at the target, by name; kept true. */
  readonly objects: Map<string, TargetObject>;
}

/** A snapshot goes before the segments that only it needs, so that an end in the middle leaves nothing that leads nowhere. */
export async function sweep(target: ReplicaTarget, options: SweepOptions): Promise<void> {
  for (const name of namesToRemove(options)) {
    await target.remove(name);
    options.objects.delete(name);
  }
}

/** In the order in which they are to go. */
export function namesToRemove({ generations, current, before }: SweepOptions): string[] {
  return generations.flatMap(({ name, snapshots, segments }) => {
    const newest = Math.max(...snapshots.map(({ at }) => at), ...segments.map(({ maxAt }) => maxAt));
    if (name !== current && newest < before) {
      return [...snapshots, ...segments].map(({ file }) => file.name).concat(generationFile(name));
    }
    // The oldest point to be reached begins with this one; all before it are not needed.
    const base = snapshots.findLast(({ at }) => at <= before);
    if (base === undefined) return [];
    return [
      ...snapshots.filter(({ seq, at }) => seq < base.seq || (seq === base.seq && at < base.at)),
      ...segments.filter(({ toSeq }) => toSeq <= base.seq),
    ].map(({ file }) => file.name);
  });
}
