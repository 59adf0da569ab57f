/** The database of a data folder: whether it is of a cluster, and, where nobody has it open, how it becomes one's. */
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

/** `own`: it has commits of its own, or follows somebody else. */
export type LocalDatabase =
  | { readonly kind: "none" }
  | { readonly kind: "own" }
  | LocalMember;

export interface LocalMember {
  readonly kind: "member";
  readonly clusterId: string;
  readonly position: LogPosition;
  /** The version of the app's code that it names. */
  readonly version: string | null;
}

/** Throws an `UnusableDatabaseError` as readers do. */
export async function lookAtDatabase(dataDir: string): Promise<LocalDatabase> {
  const path = join(dataDir, archiveNames.database);
  if (await statIfThere(path) === null) return { kind: "none" };
  const { place, history, version } = readFollowerState(path);
  const clusterId = place === null ? null : clusterOfSource(place);
  if (clusterId === null || history === null || history.generation === null) return { kind: "own" };
  const { generation, seq, ts, sum } = history;
  return { kind: "member", clusterId, position: { generation, seq, ts, sum }, version };
}

/** Begins a cluster's history in it; makes it where there is none. */
export function beginHistory(dataDir: string, clusterId: string): JournalHead {
  const path = join(dataDir, archiveNames.database);
  openWriterDatabase(path)[Symbol.dispose]();
  return startClusterHistory(path, { id: clusterId, now: Date.now() });
}

/** Takes back what {@linkcode beginHistory} has done. */
export async function undoHistory(dataDir: string, { made }: { readonly made: boolean }): Promise<void> {
  const path = join(dataDir, archiveNames.database);
  if (!made) return forgetHistory(path, "written");
  for (const end of ["-wal", "-shm", ""]) await removeIfThere(`${path}${end}`);
}
