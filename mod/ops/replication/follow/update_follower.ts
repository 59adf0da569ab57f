/**
 * Updates the closed database of a data folder to the newest state of a replica: with the missing rows, or with a
 * snapshot at a gap. `data.db` is replaced only by a database that is complete and checked.
 */
import { join } from "node:path";
import { LocationError } from "../../../kit/locations/object_store.ts";
import {
  checkDatabase,
  checkDatabaseSchema,
  forgetHistory,
  isHistoryMismatch,
  markAsFollower,
  openWriterDatabase,
  readFollowerState,
  UnusableDatabaseError,
} from "../../../engine/mod.ts";
import { removeIfThere, statIfThere, syncFolder } from "../../../kit/durable_files.ts";
import { replicationLimits } from "../../limits.ts";
import { archiveNames, extractArchive } from "../../backups/archive/mod.ts";
import { downloadArchive } from "../../backups/stored_archives.ts";
import { generationsOf } from "../history.ts";
import { GENERATIONS } from "../names.ts";
import { openReplica, type ReplicaReader } from "../replica_target.ts";
import { LogGapError, type LogPosition } from "./follower.ts";
import { newestWithSnapshot, SegmentLog } from "./segment_log.ts";

export interface FollowerUpdateOptions {
  readonly dataDir: string;
  /**
   * `begin`: updates the database before it is served. `promote`: the same, and it stops following. `renew`: prepares a newer
   * state beside the database in use; the next `begin` replaces the database with it.
   */
  readonly step: "begin" | "promote" | "renew";
  readonly signal: AbortSignal;
  /** Interval between polls for objects that a late listing may lack, in milliseconds. Default: a second. */
  readonly pollMs?: number;
}

/** `own`: the database does not follow a replica and was not changed. */
export type FollowerUpdate =
  | { readonly kind: "own" }
  | {
    readonly kind: "updated";
    readonly ts: number;
    /** Whether it started from a snapshot. */
    readonly snapshot: boolean;
    /** Why the newest rows could not be applied, or `null`. */
    readonly stale: string | null;
  };

/** Folder in the data folder where a newer state is prepared. */
export const INCOMING = "incoming-replica";
const READY = "ready";

/** `open` opens the target, which is closed at the end. Throws a `LocationError`, or an error of the file system. */
export async function updateFollower(
  open: () => Promise<ReplicaReader>,
  options: FollowerUpdateOptions,
): Promise<FollowerUpdate> {
  const { dataDir, step } = options;
  const path = join(dataDir, archiveNames.database);
  if (step !== "renew") await swapPrepared(dataDir);
  const state = await statIfThere(path) === null ? null : readFollowerState(path);
  if (state !== null && state.source === null) return { kind: "own" };
  const update = await applyRowsOrSnapshot(open, { ...options, path, position: positionOf(state) });
  if (step === "promote") {
    if (update.stale !== null) throw new LocationError("away", update.stale);
    forgetHistory(path, "promoted");
  }
  return update;
}

async function applyRowsOrSnapshot(
  open: () => Promise<ReplicaReader>,
  options: FollowerUpdateOptions & { readonly path: string; readonly position: LogPosition | null },
): Promise<Extract<FollowerUpdate, { kind: "updated" }>> {
  const { dataDir, step, path, position } = options;
  const done = (ts: number, more: { readonly snapshot?: boolean; readonly stale?: string } = {}) =>
    ({ kind: "updated", ts, snapshot: more.snapshot ?? false, stale: more.stale ?? null }) as const;
  try {
    await using target = await open();
    await openReplica(target);
    if (position !== null && step !== "renew") {
      try {
        return done(await applyNewRows(target, { ...options, path }));
      } catch (error) {
        if (!(error instanceof LogGapError)) throw error;
      }
    }
    const ts = await prepareSnapshot(target, { ...options, behind: position });
    if (step !== "renew") await swapPrepared(dataDir);
    return done(ts, { snapshot: true });
  } catch (error) {
    // An existing database is served without the target.
    if (position === null || step === "renew" || !(error instanceof LocationError)) throw error;
    return done(position.ts, { stale: error.message });
  }
}

function positionOf(state: Pick<ReturnType<typeof readFollowerState>, "history"> | null): LogPosition | null {
  const { generation = null, seq = 0, ts = 0, sum = "" } = state?.history ?? {};
  return generation === null ? null : { generation, seq, ts, sum };
}

/** Applies the rows that follow in the log. Returns the newest ts. Throws a `LogGapError` at a gap. */
async function applyNewRows(
  target: ReplicaReader,
  { path, signal, pollMs = replicationLimits.lateListingMs }:
    & Pick<FollowerUpdateOptions, "signal" | "pollMs">
    & { readonly path: string },
): Promise<number> {
  let clock = 0;
  using db = openWriterDatabase(path, { journal: "external", now: () => clock });
  await using log = new SegmentLog(target, { everyMs: pollMs });
  for (;;) {
    const position = positionOf({ history: db.history });
    if (position === null) throw new LogGapError("The database was written to by others");
    const { items, newestTs } = await log.read(position, { signal });
    const last = items.at(-1);
    if (last !== undefined) {
      clock = last.at;
      try {
        db.openGroup();
        db.applyRows(items);
        db.commitGroup(null);
      } catch (error) {
        if (!isHistoryMismatch(error)) throw error;
        throw new LogGapError(error instanceof Error ? error.message : String(error), { cause: error });
      }
    } else if (newestTs <= db.ts) return db.ts;
  }
}

/** Prepares the newest state in its own folder. Returns its ts. */
async function prepareSnapshot(
  target: ReplicaReader,
  { dataDir, signal, behind, ...more }: FollowerUpdateOptions & { readonly behind: LogPosition | null },
): Promise<number> {
  const newest = newestWithSnapshot(
    generationsOf(await Array.fromAsync(target.list(GENERATIONS))),
    (generation, { seq }) => behind === null || generation !== behind.generation || seq > behind.seq,
  );
  const snapshot = newest?.snapshots.at(-1);
  if (snapshot === undefined) {
    const what = behind === null ? "There is no snapshot" : `There is no snapshot after ts ${behind.ts}`;
    throw new LocationError("target", `${what} at "${target.location}"`);
  }
  const { name } = snapshot.file;
  return await unpackSnapshot(target, {
    dataDir,
    signal,
    name,
    source: target.location,
    catchUp: (path) => applyNewRows(target, { ...more, path, signal }),
  });
}

/** The snapshot of a target that becomes the database of a follower. */
export interface SnapshotOptions {
  readonly dataDir: string;
  /** The archive, at the target. */
  readonly name: string;
  /** Content of the follower mark of the database. */
  readonly source: string;
  readonly signal: AbortSignal;
}

/**
 * Replaces the closed database of a data folder with a snapshot, once it is complete and checked. Returns its ts.
 * Throws a `LocationError`, or an error of the file system.
 */
export async function fetchSnapshot(
  open: () => Promise<ReplicaReader>,
  options: SnapshotOptions,
): Promise<number> {
  await using target = await open();
  const ts = await unpackSnapshot(target, { ...options, catchUp: () => Promise.resolve(0) });
  await swapPrepared(options.dataDir);
  return ts;
}

/** Prepares a snapshot and the rows that follow it. Returns the newest ts. */
async function unpackSnapshot(
  target: ReplicaReader,
  { dataDir, signal, name, source, catchUp }: SnapshotOptions & {
    readonly catchUp: (path: string) => Promise<unknown>;
  },
): Promise<number> {
  const incoming = join(dataDir, INCOMING);
  await removeIfThere(incoming);
  await Deno.mkdir(incoming, { recursive: true, mode: 0o700 });
  const archive = join(incoming, "snapshot.tar.zst");
  if (!await downloadArchive(target, { name, path: archive })) {
    throw new LocationError("away", `The snapshot "${name}" is not at "${target.location}"`);
  }
  const folder = join(incoming, "unpacked");
  const { readable } = await Deno.open(archive);
  await extractArchive(readable.pipeThrough(new TransformStream(), { signal }), folder);
  await removeIfThere(archive);
  const path = join(folder, archiveNames.database);
  checkDatabaseSchema(path);
  markAsFollower(path, source);
  await catchUp(path);
  const { ts } = checkDatabase(path);
  for (const end of ["-wal", "-shm"]) await removeIfThere(`${path}${end}`);
  signal.throwIfAborted();
  await Deno.rename(folder, join(incoming, READY));
  await syncFolder(incoming);
  return ts;
}

/** Replaces the database with a prepared state, if there is one. The next call completes an interrupted one. */
async function swapPrepared(dataDir: string): Promise<void> {
  const path = join(dataDir, archiveNames.database);
  const ready = join(dataDir, INCOMING, READY, archiveNames.database);
  if (await statIfThere(ready) !== null) {
    // Never replaces a database that does not follow, such as one created in the meantime.
    if (await statIfThere(path) === null || isFollowed(path)) {
      for (const end of ["-wal", "-shm"]) await removeIfThere(`${path}${end}`);
      await Deno.rename(ready, path);
      await syncFolder(dataDir);
    }
  }
  await removeIfThere(join(dataDir, INCOMING));
}

function isFollowed(path: string): boolean {
  try {
    return readFollowerState(path).source !== null;
  } catch (error) {
    if (error instanceof UnusableDatabaseError) return false;
    throw error;
  }
}
