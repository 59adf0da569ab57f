/** The database of a data folder, while no process uses it: its cluster, and the start of a cluster's history. */
import { join } from "node:path";
import {
  clusterOfSource,
  forgetHistory,
  type JournalHead,
  openWriterDatabase,
  readFollowerState,
  startClusterHistory,
} from "../../engine/mod.ts";
import { removeIfThere, statIfThere } from "../../kit/durable_files.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import type { LogPosition } from "../../ops/replication/mod.ts";

/** `own`: it has commits of its own, or follows a replica. */
export type LocalDatabase =
  | { readonly kind: "none" }
  | { readonly kind: "own" }
  | LocalMember;

export interface LocalMember {
  readonly kind: "member";
  readonly clusterId: string;
  readonly position: LogPosition;
  /** Deployed version of the app; `null` before the first deploy. */
  readonly version: string | null;
}

/** Throws an `UnusableDatabaseError`. */
export async function inspectDatabase(dataDir: string): Promise<LocalDatabase> {
  const path = join(dataDir, archiveNames.database);
  if (await statIfThere(path) === null) return { kind: "none" };
  const { source, history, version } = readFollowerState(path);
  const clusterId = source === null ? null : clusterOfSource(source);
  if (clusterId === null || history === null || history.generation === null) return { kind: "own" };
  const { generation, seq, ts, sum } = history;
  return { kind: "member", clusterId, position: { generation, seq, ts, sum }, version };
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
