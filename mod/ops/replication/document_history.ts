/** Earlier states of one document, read from the segments of a replica and the snapshot before them. */
import { join } from "node:path";
import { checkDatabaseSchema, openExport, readRow, UnusableDatabaseError } from "../../engine/mod.ts";
import { isDiskFull, removeIfThere } from "../../kit/durable_files.ts";
import { LocationError } from "../../kit/locations/object_store.ts";
import { ArchiveError, archiveNames, extractArchive, UnpackSpaceError } from "../backups/archive/mod.ts";
import { replicationLimits } from "../limits.ts";
import { type Generation, generationsOf, planRestore, type Segment, type Snapshot } from "./history.ts";
import { GENERATIONS } from "./names.ts";
import type { ReplicaReader } from "./replica_target.ts";
import { rowsOf } from "./segment.ts";

/** A document after a commit. */
export interface DocumentState {
  readonly ts: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The document as JSON; `null` if the commit deleted it. */
  readonly text: string | null;
}

export interface DocumentHistory {
  /** Newest first. */
  readonly states: readonly DocumentState[];
  /** Start of the time for which all states are known; `null` if there is none. */
  readonly since: number | null;
  /** The document before the oldest state, from a snapshot; `null` if it is not known. */
  readonly before: {
    /** Time of the snapshot, in milliseconds since the epoch. */
    readonly at: number;
    /** The document as JSON; `null` if it did not exist. */
    readonly text: string | null;
  } | null;
}

export interface DocumentHistoryOptions {
  /** Folder for an unpacked snapshot, which is created and removed. */
  readonly folder: string;
  readonly now?: () => number;
  /** Timeout for unpacking the snapshot. */
  readonly snapshotMs?: number;
}

/** Reads the newest segments first, until enough states, bytes or time are spent. */
export async function documentHistory(
  target: ReplicaReader,
  id: string,
  { folder, now = () => performance.now(), snapshotMs = replicationLimits.historySnapshotMs }:
    DocumentHistoryOptions,
): Promise<DocumentHistory> {
  const { historyStatesMax, historyBytesMax, historyMs, historyCharsMax } = replicationLimits;
  const until = now() + historyMs;
  const generations = generationsOf(await Array.fromAsync(target.list(GENERATIONS)));
  const segments = generations.flatMap(({ segments }) => segments).toReversed();
  const states: (DocumentState & { readonly generation: string })[] = [];
  const known = new Set<number>();
  const read = new Set<Segment>();
  let [bytes, chars] = [0, 0];
  let since: number | null = null;
  for (const segment of segments) {
    // Pieces of a merged segment may still exist.
    const found: DocumentState[] = [];
    let isLate = false;
    for await (const row of rowsOf(target, [segment])) {
      isLate = now() >= until;
      if (isLate) break;
      if (!row.body.includes(id)) continue;
      for (const { ts, at, changes } of readRow(row).commits) {
        const change = changes.find((change) => change.id === id);
        if (change !== undefined && !known.has(ts)) found.push({ ts, at, text: change.text });
        // A segment begins with its oldest commit.
        if (found.length > historyStatesMax) found.shift();
      }
    }
    for (const state of found.toReversed()) {
      known.add(state.ts);
      states.push({ ...state, generation: segment.generation });
      chars += state.text?.length ?? 0;
    }
    if (!isLate) {
      read.add(segment);
      since = segment.minAt;
    }
    bytes += segment.file.size;
    const spent = states.length >= historyStatesMax || bytes >= historyBytesMax || chars >= historyCharsMax;
    if (spent || now() >= until) break;
  }
  const newest = states.toSorted((a, b) => b.ts - a.ts).slice(0, historyStatesMax);
  const oldest = newest.at(-1);
  let before: DocumentHistory["before"] = null;
  // Earlier states may have been left out.
  if (newest.length === historyStatesMax) since = oldest?.at ?? since;
  else if (oldest !== undefined && now() < until) {
    const snapshot = snapshotBefore(oldest, { generations, read });
    if (snapshot !== null && bytes + snapshot.file.size <= historyBytesMax && !isCreation(oldest, snapshot)) {
      before = await stateIn(target, snapshot, { id, folder, snapshotMs });
      if (chars + (before?.text?.length ?? 0) > historyCharsMax) before = null;
    }
  }
  return { states: newest.map(({ generation: _, ...state }) => state), since, before };
}

/** Returns the newest snapshot before a commit if all segments between them were read, otherwise `null`. */
function snapshotBefore(
  { ts, generation }: { readonly ts: number; readonly generation: string },
  { generations, read }: {
    readonly generations: readonly Generation[];
    readonly read: ReadonlySet<Segment>;
  },
): Snapshot | null {
  try {
    const { snapshot, segments } = planRestore(generations, { generation, toTs: ts - 1 }, {
      now: Infinity,
      location: "",
    });
    return segments.every((segment) => read.has(segment)) ? snapshot : null;
  } catch (error) {
    if (error instanceof LocationError) return null;
    throw error;
  }
}

function isCreation({ text }: DocumentState, { at }: Snapshot): boolean {
  return text !== null && Number(JSON.parse(text)["_creationTime"]) > at;
}

/** Returns the document in a snapshot; `null` if the snapshot is unreadable or the timeout expires. */
async function stateIn(
  target: ReplicaReader,
  { at, file }: Snapshot,
  { id, folder, snapshotMs }: { readonly id: string; readonly folder: string; readonly snapshotMs: number },
): Promise<DocumentHistory["before"]> {
  await removeIfThere(folder);
  const signal = AbortSignal.timeout(snapshotMs);
  try {
    const archive = await target.get(file.name);
    if (archive === null) return null;
    await extractArchive(archive.pipeThrough(new TransformStream(), { signal }), folder);
    const path = join(folder, archiveNames.database);
    checkDatabaseSchema(path);
    using database = openExport(path);
    return { at, text: database.document(id) };
  } catch (error) {
    const isUnusable = error === signal.reason || error instanceof LocationError ||
      error instanceof ArchiveError ||
      error instanceof UnusableDatabaseError || error instanceof UnpackSpaceError || isDiskFull(error);
    if (!isUnusable) throw error;
    return null;
  } finally {
    await removeIfThere(folder);
  }
}
