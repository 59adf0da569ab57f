/**
 * Reads the rows of consecutive segments. A replica changes in the meantime: if a segment was merged after the listing, its
 * rows are read from the merged one.
 */
import { setTimeout as delay } from "node:timers/promises";
import { LocationError, ObjectLostError } from "../../kit/locations/object_store.ts";
import type { JournalRow } from "../../engine/mod.ts";
import { replicationLimits } from "../limits.ts";
import { chainFrom, generationsOf, type Segment } from "./history.ts";
import { GENERATIONS } from "./names.ts";
import { readSegmentBatches, type SegmentBytes } from "./segment.ts";
import { readTarget, type ReplicaReader } from "./replica_target.ts";

/** Yields single rows: see {@linkcode rowBatchesOf}. */
export async function* rowsOf(
  target: ReplicaReader,
  segments: readonly Segment[],
): AsyncGenerator<JournalRow> {
  for await (const rows of rowBatchesOf(target, segments)) yield* rows;
}

/** Position of the reader: the last row read, and its checksum. */
type Reached = Pick<Segment, "sum"> & { readonly seq: number };

/**
 * Yields the rows of consecutive segments, some at a time; the next segments are fetched in the meantime.
 * Throws a `LocationError` for a segment that is damaged, or that is missing and part of no other.
 */
export async function* rowBatchesOf(
  target: ReplicaReader,
  segments: readonly Segment[],
): AsyncGenerator<readonly JournalRow[]> {
  const [first, last] = [segments[0], segments.at(-1)];
  if (first === undefined || last === undefined) return;
  let reached: Reached = { seq: first.fromSeq - 1, sum: first.prev };
  let rest = segments;
  for (let looks = 0; reached.seq < last.toSeq;) {
    let missing: Segment | null = null;
    for await (const { segment, bytes } of fetchAhead(target, rest)) {
      if (bytes === null) {
        missing = segment;
        break;
      }
      try {
        for await (const rows of readSegmentBatches(bytes, segment)) {
          const part = rowsWithin(rows, { after: reached.seq, upTo: last.toSeq });
          const end = part.at(-1);
          if (end === undefined) continue;
          yield part;
          reached = { seq: end.seq, sum: end.sum };
        }
      } catch (error) {
        if (!(error instanceof ObjectLostError) || error.reason !== "gone") throw error;
        missing = segment;
        break;
      }
      looks = 0;
    }
    if (missing === null) return;
    if (looks++ >= replicationLimits.mergedSearches) throw missingSegment(missing);
    const led = await replacementsOf(target, { missing, reached, upTo: last.toSeq });
    // A listing may lack objects that are created or removed during it.
    if (led === null) await delay(replicationLimits.mergedSearchMs);
    rest = led ?? rest.slice(rest.indexOf(missing));
  }
}

function rowsWithin(
  rows: readonly JournalRow[],
  { after, upTo }: { readonly after: number; readonly upTo: number },
): readonly JournalRow[] {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined || (first.seq > after && last.seq <= upTo)) return rows;
  return rows.filter(({ seq }) => seq > after && seq <= upTo);
}

/** Returns the segments that replace a missing one, by a new listing; `null` when there are none. */
async function replacementsOf(
  target: ReplicaReader,
  { missing, reached, upTo }: { readonly missing: Segment; readonly reached: Reached; readonly upTo: number },
): Promise<readonly Segment[] | null> {
  const objects = await Array.fromAsync(target.list(`${GENERATIONS}${missing.generation}/`));
  const chain = chainFrom(reached, generationsOf(objects)[0]?.segments ?? []);
  const end = chain.findIndex(({ toSeq }) => toSeq >= upTo);
  return end < 0 ? null : chain.slice(0, end + 1);
}

function missingSegment({ fromTs, toTs, generation }: Segment): LocationError {
  return new LocationError(
    "target",
    `The segment of ts ${fromTs} to ${toTs} in generation ${generation} is missing`,
  );
}

/** Yields the bytes of segments in order; `null` for a missing one. */
async function* fetchAhead(
  target: ReplicaReader,
  segments: readonly Segment[],
): AsyncGenerator<{ readonly segment: Segment; readonly bytes: SegmentBytes | null }> {
  const { segmentsAhead, segmentBytesWhole } = replicationLimits;
  const fetching: (Promise<Uint8Array<ArrayBuffer> | null> | undefined)[] = [];
  let ahead = 0;
  try {
    for (const [at, segment] of segments.entries()) {
      for (; ahead < Math.min(segments.length, at + segmentsAhead); ahead++) {
        const { name, size } = segments[ahead]?.file ?? segment.file;
        // Larger ones are streamed when they are next.
        if (size > segmentBytesWhole) continue;
        const read = readTarget(target, name);
        // The error is thrown when the segment is next.
        read.catch(() => {});
        fetching[ahead] = read;
      }
      const whole = fetching[at];
      yield { segment, bytes: await (whole ?? target.get(segment.file.name)) };
      delete fetching[at];
    }
  } finally {
    // Waits for segments that were requested ahead.
    await Promise.allSettled(fetching);
  }
}
