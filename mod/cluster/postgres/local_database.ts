/** The database of a data folder, while no process uses it: its cluster, its history, and its preparation for a start. */
import type { ObjectLocation } from "../../kit/locations/object_store.ts";
import { setTimeout as wait } from "node:timers/promises";
import { join } from "node:path";
import {
  clusterOfSource,
  clusterSource,
  forgetHistory,
  type JournalHead,
  openWriterDatabase,
  readFollowerState,
  startClusterHistory,
} from "../../engine/mod.ts";
import { removeIfThere, statIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import { fetchSnapshotInProcess, FollowerUpdateError, type LogPosition } from "../../ops/replication/mod.ts";
import { ClusterError } from "./cluster_error.ts";
import type { ClusterDatabase } from "./database.ts";
import type { Identity } from "./identity.ts";
import { clusterLimits } from "./limits.ts";
import { listSnapshots, type Snapshot } from "./snapshots.ts";

/** `own`: it has commits of its own, or follows a replica. */
export type LocalDatabase =
  | { readonly kind: "none" }
  | { readonly kind: "own" }
  | { readonly kind: "member"; readonly clusterId: string; readonly position: LogPosition };

/** Throws an `UnusableDatabaseError`. */
export async function inspectDatabase(dataDir: string): Promise<LocalDatabase> {
  const path = join(dataDir, archiveNames.database);
  if (await statIfThere(path) === null) return { kind: "none" };
  const { source, history } = readFollowerState(path);
  const clusterId = source === null ? null : clusterOfSource(source);
  if (clusterId === null || history === null || history.generation === null) return { kind: "own" };
  const { generation, seq, ts, sum } = history;
  return { kind: "member", clusterId, position: { generation, seq, ts, sum } };
}

/** Starts a cluster's history in the database, which is created if it is missing. */
export function beginHistory(dataDir: string, clusterId: string): JournalHead {
  const path = join(dataDir, archiveNames.database);
  openWriterDatabase(path)[Symbol.dispose]();
  return startClusterHistory(path, { id: clusterId, now: Date.now() });
}

/** Reverts {@linkcode beginHistory}. */
export async function undoHistory(dataDir: string, { made }: { readonly made: boolean }): Promise<void> {
  const path = join(dataDir, archiveNames.database);
  if (!made) return forgetHistory(path, "written");
  for (const end of ["-wal", "-shm", ""]) await removeIfThere(`${path}${end}`);
}

export interface PrepareOptions {
  readonly database: ClusterDatabase;
  readonly identity: Identity;
  readonly dataDir: string;
  readonly snapshots: ObjectLocation;
  /** Replaces the database by the newest snapshot, because it cannot continue with the log. */
  readonly fromSnapshot: boolean;
  /** Time to wait for the database and the first snapshot. */
  readonly startMs?: number;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Returns the position of the prepared database. Throws a `ClusterError` if there is no usable snapshot. */
export async function prepareDatabase(options: PrepareOptions): Promise<LogPosition> {
  const { identity: { id, generation }, dataDir, snapshots: target, fromSnapshot, signal, log } = options;
  const local = await inspectDatabase(dataDir);
  const matches = local.kind === "member" && local.position.generation === generation;
  if (matches && !fromSnapshot) return local.position;
  const { startMs = clusterLimits.startMs } = options;
  for (const until = performance.now() + startMs;;) {
    const newest = await newestSnapshot(options);
    log("info", "Downloading the newest snapshot of the cluster, which may take a while", { ts: newest.ts });
    try {
      await fetchSnapshotInProcess({ dataDir, target, name: newest.name, source: clusterSource(id), signal });
      break;
    } catch (error) {
      if (!(error instanceof FollowerUpdateError) || signal.aborted) throw error;
      if (performance.now() > until) {
        throw new ClusterError(`Cannot download the newest snapshot of the cluster: ${error.message}`, {
          cause: error,
        });
      }
      // A newer snapshot may have replaced it.
      log("warn", "Cannot download the newest snapshot of the cluster; retrying", {
        code: "cluster",
        reason: error.message,
      });
      await wait(clusterLimits.snapshotFetchRetryMs, undefined, { signal });
    }
  }
  const fetched = await inspectDatabase(dataDir);
  if (fetched.kind !== "member") {
    throw new ClusterError("The newest snapshot does not belong to this cluster");
  }
  return fetched.position;
}

/** Waits for the first snapshot of a new cluster. */
async function newestSnapshot({ database, startMs, signal, log }: PrepareOptions): Promise<Snapshot> {
  let logged = false;
  for (const until = performance.now() + (startMs ?? clusterLimits.firstSnapshotMs);;) {
    const list = () => listSnapshots(database.slow, database.statements);
    const [newest] = await database.retry(list, signal);
    if (newest !== undefined) return newest;
    if (!logged) log("info", "The cluster has no snapshot yet. Waiting for the first one of its leader");
    logged = true;
    if (performance.now() > until) {
      throw new ClusterError("The cluster has no snapshot yet. Its first server makes one when it serves");
    }
    await wait(clusterLimits.firstSnapshotCheckMs, undefined, { signal });
  }
}
