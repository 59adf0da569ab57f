/**
 * Segments: journal rows in zstd frames, followed by a hash of all bytes, like archives. The content starts with a line of
 * JSON that identifies it. Each row is a line of JSON with its metadata and length, followed by its body.
 */
import { Buffer, isAscii } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import { chainedSum, type JournalRow, rowTimes } from "../../engine/mod.ts";
import { LocationError, ObjectLostError } from "../../kit/locations/object_store.ts";
import { ArchiveError, packFrames, unpackFrames } from "../backups/archive/mod.ts";
import { replicationLimits } from "../limits.ts";
import { chainFrom, generationsOf, type Segment } from "./history.ts";
import { GENERATIONS, type SegmentName } from "./names.ts";
import { readTarget, type ReplicaReader } from "./replica_target.ts";

/** Raised when an older program could not read what a newer one wrote. */
export const SEGMENT_FORMAT = 1;

interface SegmentHead {
  readonly syncline: "segment";
  readonly format: number;
  readonly generation: string;
}

type RowHead = readonly [seq: number, tsBefore: number, ts: number, at: number, sum: string, bytes: number];

const encoder = new TextEncoder();
const NEWLINE = 10;
/** Maximum size of a line of metadata. */
const LINE_BYTES_MAX = 1024;

/** A segment ready for upload. */
export interface PackedSegment {
  readonly name: Omit<SegmentName, "kind">;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface PackOptions {
  readonly generation: string;
  /** Chained sum of the row before the first. */
  readonly prev: string;
  readonly level: number;
}

/** Packs at least one row. Yields the thread between frames. */
export async function packSegment(
  rows: AsyncIterable<JournalRow> | Iterable<JournalRow>,
  { generation, prev, level }: PackOptions,
): Promise<PackedSegment> {
  let first: JournalRow | undefined;
  let last: JournalRow | undefined;
  let [minAt, maxAt] = [Infinity, -Infinity];
  async function* texts(): AsyncGenerator<Uint8Array> {
    const head: SegmentHead = { syncline: "segment", format: SEGMENT_FORMAT, generation };
    yield encoder.encode(`${JSON.stringify(head)}\n`);
    for await (const row of rows) {
      first ??= row;
      last = row;
      const times = rowTimes(row);
      minAt = Math.min(minAt, times.first);
      maxAt = Math.max(maxAt, times.last);
      const body = encoder.encode(row.body);
      const { seq, tsBefore, ts, at, sum } = row;
      yield encoder.encode(
        `${JSON.stringify([seq, tsBefore, ts, at, sum, body.length] satisfies RowHead)}\n`,
      );
      yield body;
    }
  }
  const frames: Uint8Array[] = [];
  for await (const frame of packFrames(texts())) frames.push(frame);
  if (first === undefined || last === undefined) throw new RangeError("A segment has at least one row");
  return {
    name: {
      generation,
      fromTs: first.tsBefore + 1,
      toTs: last.ts,
      fromSeq: first.seq,
      toSeq: last.seq,
      minAt,
      maxAt,
      prev,
      sum: last.sum,
      level,
    },
    bytes: joined(frames),
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The bytes of a segment: complete, or as a stream. */
type SegmentBytes = Uint8Array<ArrayBuffer> | AsyncIterable<Uint8Array<ArrayBuffer>>;

/** The rows of a segment one by one: see {@linkcode readSegmentBatches}. */
export async function* readSegment(bytes: SegmentBytes, segment: SegmentName): AsyncGenerator<JournalRow> {
  for await (const rows of readSegmentBatches(bytes, segment)) yield* rows;
}

/**
 * Yields the rows of a segment in batches, each row verified by its chained checksum. Rows are yielded before the whole
 * segment is verified. Throws a `LocationError` for a damaged segment.
 */
async function* readSegmentBatches(
  bytes: SegmentBytes,
  segment: SegmentName,
): AsyncGenerator<readonly JournalRow[]> {
  const reader = new RowReader(segment);
  try {
    for await (const piece of unpackFrames(bytes instanceof Uint8Array ? once(bytes) : bytes)) {
      const rows: JournalRow[] = [];
      let fault: unknown = null;
      try {
        reader.read(piece, rows);
      } catch (error) {
        fault = error;
      }
      // The rows before the damage are intact.
      if (rows.length > 0) yield rows;
      if (fault !== null) throw fault;
    }
    reader.end();
  } catch (error) {
    if (error instanceof LocationError) throw error;
    const known = error instanceof ArchiveError || error instanceof SyntaxError ||
      error instanceof TypeError ||
      error instanceof RangeError;
    throw known ? damaged(segment, "its bytes have changed since it was written", error) : error;
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function checkHead(line: string, segment: SegmentName): void {
  const head = JSON.parse(line) as SegmentHead;
  if (head.syncline === "segment" && head.format > SEGMENT_FORMAT) {
    throw new LocationError(
      "target",
      `A newer version of the server wrote this replica (segments of format ${head.format}, this one knows ` +
        `${SEGMENT_FORMAT}): use the newer version`,
    );
  }
  if (head.syncline !== "segment" || head.generation !== segment.generation) {
    throw damaged(segment, "it belongs to another generation");
  }
}

function damaged({ fromTs, toTs, generation }: SegmentName, why: string, cause?: unknown): LocationError {
  return new LocationError(
    "target",
    `The segment of ts ${fromTs} to ${toTs} in generation ${generation} is damaged: ${why}`,
    { cause },
  );
}

/** Reads rows from unpacked chunks of any size. */
class RowReader {
  readonly #segment: SegmentName;
  #buffer: Buffer = Buffer.alloc(0);
  #hasHead = false;
  /** Metadata of a row whose body has not arrived yet. */
  #facts: RowHead | null = null;
  #sum: string;
  #seq: number;
  #ts: number;

  constructor(segment: SegmentName) {
    this.#segment = segment;
    ({ prev: this.#sum, fromSeq: this.#seq } = segment);
    this.#ts = segment.fromTs - 1;
  }

  read(piece: Uint8Array, rows: JournalRow[]): void {
    const more = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    const buffer = this.#buffer.length === 0 ? more : Buffer.concat([this.#buffer, more]);
    // The rest of a long row arrives later.
    if (this.#facts !== null && buffer.length < this.#facts[5]) {
      this.#buffer = buffer;
      return;
    }
    // ASCII is decoded as one string that rows are sliced from, which is far cheaper than decoding each row.
    const whole = isAscii(buffer) ? buffer.toString("latin1") : null;
    const text = (from: number, to: number) => whole?.slice(from, to) ?? buffer.toString("utf8", from, to);
    let at = 0;
    for (;;) {
      if (this.#facts === null) {
        const end = whole?.indexOf("\n", at) ?? buffer.indexOf(NEWLINE, at);
        if (end < 0 && buffer.length - at > LINE_BYTES_MAX) throw new RangeError("A line is too long");
        if (end < 0) break;
        const line = text(at, end);
        at = end + 1;
        if (!this.#hasHead) {
          checkHead(line, this.#segment);
          this.#hasHead = true;
          continue;
        }
        this.#facts = factsOf(line);
      }
      const [, , , , , length] = this.#facts;
      if (buffer.length - at < length) break;
      rows.push(this.#row(this.#facts, text(at, at + length)));
      at += length;
      this.#facts = null;
    }
    this.#buffer = buffer.subarray(at);
  }

  /** Throws unless the rows read are those of the segment's name. */
  end(): void {
    if (this.#facts !== null || this.#buffer.length > 0 || !this.#hasHead) {
      throw new RangeError("The last row is incomplete");
    }
    const { toSeq, toTs, sum } = this.#segment;
    if (this.#seq !== toSeq + 1 || this.#ts !== toTs || this.#sum !== sum) {
      throw damaged(this.#segment, "its rows do not match its name");
    }
  }

  /** Returns a row after verifying its checksum. Bytes that are not UTF-8 decode differently, and so fail the check. */
  #row([seq, tsBefore, ts, at, sum]: RowHead, body: string): JournalRow {
    const row = { seq, tsBefore, ts, at, sum, body, before: this.#sum };
    if (seq !== this.#seq || tsBefore !== this.#ts || chainedSum(this.#sum, row) !== sum) {
      throw damaged(this.#segment, `row ${seq} does not follow the one before it`);
    }
    this.#seq = seq + 1;
    this.#ts = ts;
    this.#sum = sum;
    return row;
  }
}

function factsOf(line: string): RowHead {
  const facts = JSON.parse(line) as RowHead;
  const [, , , , , length] = facts;
  if (!Number.isSafeInteger(length) || length < 0) throw new RangeError("A row has an invalid length");
  return facts;
}

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
 * Yields the rows of consecutive segments, some at a time; the next segments are fetched in the meantime. If a segment was
 * merged after the listing, its rows are read from the merged one. Throws a `LocationError` for a segment that is damaged, or
 * that is missing and part of no other.
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
