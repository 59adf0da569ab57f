/** The restore drill: reads and checks all objects of a target, and rebuilds and discards the newest state. */
import { join } from "node:path";
import { LocationError } from "../../kit/locations/object_store.ts";
import { removeIfThere } from "../../kit/durable_files.ts";
import { ArchiveError, unpackFrames } from "../backups/archive/mod.ts";
import { downloadArchive } from "../backups/stored_archives.ts";
import {
  gapOf,
  gapsBefore,
  type Generation,
  generationsOf,
  planRestore,
  type Segment,
  type Snapshot,
} from "./history.ts";
import { GENERATIONS } from "./names.ts";
import { rowsOf } from "./segment.ts";
import { listGenerations, type PointProgress, stagePoint } from "./restore_point.ts";
import type { ReplicaReader } from "./replica_target.ts";

export interface VerifyReport {
  readonly generations: number;
  readonly snapshots: number;
  readonly segments: number;
  readonly rows: number;
  readonly bytes: number;
  /** Descriptions of missing or damaged objects. */
  readonly faults: readonly string[];
  /** The newest state that could be rebuilt; `null` when none could. */
  readonly rebuilt: { readonly ts: number; readonly documents: number; readonly seconds: number } | null;
}

export interface VerifyOptions {
  /** An empty folder for the rebuilt state. */
  readonly folder: string;
  readonly onProgress?: (progress: PointProgress) => void;
  readonly now?: () => number;
}

/** Throws a `LocationError` when the target cannot be read at all. */
export async function verifyReplica(
  target: ReplicaReader,
  { folder, onProgress, now = performance.now.bind(performance) }: VerifyOptions,
): Promise<VerifyReport> {
  const generations = await listGenerations(target);
  const faults: string[] = [];
  const counts = { snapshots: 0, segments: 0, rows: 0, bytes: 0 };
  // The rebuild reads the newest one.
  const newest = generations.findLast(({ snapshots }) => snapshots.length > 0)?.snapshots.at(-1);
  for (const generation of generations) {
    for (const snapshot of generation.snapshots) {
      onProgress?.({ step: "fetch", bytes: snapshot.file.size });
      const fault = snapshot === newest ? null : await faultOf(target, { snapshot, folder });
      if (fault !== null && await isTooOld(target, snapshot)) continue;
      if (fault !== null) faults.push(fault);
      counts.snapshots++;
      counts.bytes += snapshot.file.size;
    }
    for (const { afterTs, ts } of gapsBefore(generation)) {
      faults.push(
        `Generation ${generation.name}: segments between ts ${afterTs} and the snapshot of ts ${ts} are missing; points ` +
          "in between cannot be restored",
      );
    }
    const gap = gapOf(generation);
    if (gap !== null) {
      faults.push(
        `Generation ${generation.name}: segments behind ts ${gap.afterTs} are missing; ts ${gap.afterTs} is the newest ` +
          "point that can be reached",
      );
    }
    // Segments may be merged while snapshots are read.
    for (const segment of (await listed(target, generation.name))?.segments ?? []) {
      let rows = 0;
      try {
        for await (const _row of rowsOf(target, [segment])) rows++;
      } catch (error) {
        if (!(error instanceof LocationError) || error.fault !== "target") throw error;
        if (await isTooOld(target, segment)) continue;
        faults.push(error.message);
      }
      counts.segments++;
      counts.bytes += segment.file.size;
      counts.rows += rows;
    }
  }
  const rebuilt = await rebuild(target, { generations, folder, faults, onProgress, now });
  return { generations: generations.length, ...counts, faults, rebuilt };
}

async function listed(target: ReplicaReader, generation: string): Promise<Generation | undefined> {
  return generationsOf(await Array.fromAsync(target.list(`${GENERATIONS}${generation}/`)))[0];
}

/** Whether retention has removed an object, and all older ones, in the meantime. */
async function isTooOld(target: ReplicaReader, object: Snapshot | Segment): Promise<boolean> {
  const { snapshots = [], segments = [] } = await listed(target, object.generation) ?? {};
  return "sum" in object && "fromSeq" in object
    ? segments.every(({ fromSeq }) => fromSeq > object.toSeq) &&
      snapshots.every(({ ts }) => ts > object.fromTs)
    : snapshots.every(({ ts }) => ts > object.ts);
}

/** Returns why a snapshot is missing or damaged; `null` if it is intact. */
async function faultOf(
  target: ReplicaReader,
  { snapshot, folder }: { readonly snapshot: Snapshot; readonly folder: string },
): Promise<string | null> {
  const what = `The snapshot of ts ${snapshot.ts} in generation ${snapshot.generation}`;
  const path = join(folder, "snapshot.tar.zst");
  try {
    if (!await downloadArchive(target, { name: snapshot.file.name, path })) return `${what} is missing`;
    const { readable } = await Deno.open(path);
    for await (const _bytes of unpackFrames(readable));
    return null;
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    return `${what} is damaged: ${error.message}`;
  } finally {
    await removeIfThere(path);
  }
}

async function rebuild(
  target: ReplicaReader,
  { generations, folder, faults, onProgress, now }: {
    readonly generations: Awaited<ReturnType<typeof listGenerations>>;
    readonly folder: string;
    readonly faults: string[];
    readonly onProgress: VerifyOptions["onProgress"];
    readonly now: () => number;
  },
): Promise<VerifyReport["rebuilt"]> {
  const begun = now();
  try {
    const plan = planRestore(generations, {}, { now: Date.now(), location: target.location });
    const { ts, documents } = await stagePoint(target, plan, {
      dataDir: folder,
      localFiles: false,
      ...(onProgress && { onProgress }),
    });
    return { ts, documents, seconds: Math.round(now() - begun) / 1_000 };
  } catch (error) {
    if (error instanceof LocationError && error.fault === "away") throw error;
    faults.push(
      `The newest state cannot be rebuilt: ${error instanceof Error ? error.message : String(error)}`,
    );
    return null;
  }
}
