/** Earlier states of one document, read from the segments of a replica. */
import { readRow } from "../../engine/mod.ts";
import { replicationLimits } from "../limits.ts";
import { generationsOf } from "./history.ts";
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
}

/** Reads the newest segments first, until enough states, bytes or time are spent. */
export async function documentHistory(
  target: ReplicaReader,
  id: string,
  { now = () => performance.now() }: { readonly now?: () => number } = {},
): Promise<DocumentHistory> {
  const { historyStatesMax, historyBytesMax, historyMs, historyCharsMax } = replicationLimits;
  const until = now() + historyMs;
  const segments = generationsOf(await Array.fromAsync(target.list(GENERATIONS)))
    .flatMap(({ segments }) => segments).toReversed();
  const states: DocumentState[] = [];
  const known = new Set<number>();
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
      states.push(state);
      chars += state.text?.length ?? 0;
    }
    if (!isLate) since = segment.minAt;
    bytes += segment.file.size;
    const spent = states.length >= historyStatesMax || bytes >= historyBytesMax || chars >= historyCharsMax;
    if (spent || now() >= until) break;
  }
  const newest = states.toSorted((a, b) => b.ts - a.ts).slice(0, historyStatesMax);
  // Earlier states may have been left out.
  if (newest.length === historyStatesMax) since = newest.at(-1)?.at ?? since;
  return { states: newest, since };
}
