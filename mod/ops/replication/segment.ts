/**
 * Segments: journal rows packed into zstd frames and sealed with a hash of all their bytes, like archives. Inside, a line
 * of JSON says what it is, then comes each row: a line of JSON with its facts and its length, and its text.
 */
import type { JournalRow } from "../../engine/mod.ts";
import { chainedSum, rowTimes } from "../../engine/mod.ts";
import { ArchiveError, packFrames, unpackFrames } from "../backups/archive/mod.ts";
import type { SegmentName } from "./names.ts";
import { ReplicaError } from "./replica_error.ts";

/** Raised when an older program could not read what a newer one wrote. */
export const SEGMENT_FORMAT = 1;

interface SegmentHead {
  readonly syncline: "segment";
  readonly format: number;
  readonly generation: string;
}

type RowHead = readonly [seq: number, tsBefore: number, ts: number, at: number, sum: string, bytes: number];

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const NEWLINE = 10;
/** Bytes of a line of facts. */
const LINE_BYTES_MAX = 1024;

/** A segment that is ready to be put. */
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

/** Packs rows, of which there is at least one. Gives the thread up between frames. */
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

/**
 * The rows of a segment, as its name promises them: each has its place in the chain. Rows come before it is certain that
 * the segment is whole; each row by itself is. Throws a `ReplicaError` for a damaged segment.
 */
export async function* readSegment(
  bytes: Uint8Array<ArrayBuffer>,
  segment: SegmentName,
): AsyncGenerator<JournalRow> {
  let { prev: sum, fromSeq: seq } = segment;
  let ts = segment.fromTs - 1;
  try {
    const source = new Pieces(unpackFrames(ReadableStream.from([bytes])));
    checkHead(await source.line(), segment);
    for (;;) {
      const line = await source.line();
      if (line === null) break;
      const [number, tsBefore, rowTs, at, rowSum, length] = JSON.parse(line) as RowHead;
      const body = decoder.decode(await source.take(length));
      const row: JournalRow = { seq: number, tsBefore, ts: rowTs, at, sum: rowSum, body };
      if (number !== seq || tsBefore !== ts || chainedSum(sum, row) !== rowSum) {
        throw damaged(segment, `row ${number} does not follow the one before it`);
      }
      seq = number + 1;
      ts = rowTs;
      sum = rowSum;
      yield row;
    }
  } catch (error) {
    if (error instanceof ReplicaError) throw error;
    const known = error instanceof ArchiveError || error instanceof SyntaxError ||
      error instanceof TypeError ||
      error instanceof RangeError;
    throw known ? damaged(segment, "its bytes are not what was written", error) : error;
  }
  if (seq !== segment.toSeq + 1 || ts !== segment.toTs || sum !== segment.sum) {
    throw damaged(segment, "it does not hold what its name promises");
  }
}

function checkHead(line: string | null, segment: SegmentName): void {
  const head = JSON.parse(line ?? "") as SegmentHead;
  if (head.syncline === "segment" && head.format > SEGMENT_FORMAT) {
    throw new ReplicaError(
      "target",
      `A newer version of the server wrote this replica (segments of format ${head.format}, this one knows ` +
        `${SEGMENT_FORMAT}): use the newer version`,
    );
  }
  if (head.syncline !== "segment" || head.generation !== segment.generation) {
    throw damaged(segment, "it is one of another generation");
  }
}

function damaged({ fromTs, toTs, generation }: SegmentName, why: string, cause?: unknown): ReplicaError {
  return new ReplicaError(
    "target",
    `The segment of ts ${fromTs} to ${toTs} in generation ${generation} is damaged: ${why}`,
    { cause },
  );
}

/** Reads lines and counted bytes from pieces. */
class Pieces {
  readonly #source: AsyncIterator<Uint8Array>;
  #buffer: Uint8Array<ArrayBufferLike> = new Uint8Array();

  constructor(source: AsyncGenerator<Uint8Array>) {
    this.#source = source;
  }

  /** Without its end; `null` behind the last. */
  async line(): Promise<string | null> {
    for (;;) {
      const end = this.#buffer.indexOf(NEWLINE);
      if (end >= 0) {
        const line = decoder.decode(this.#buffer.subarray(0, end));
        this.#buffer = this.#buffer.subarray(end + 1);
        return line;
      }
      if (this.#buffer.length > LINE_BYTES_MAX) throw new RangeError("A line is too long");
      if (!await this.#more()) {
        if (this.#buffer.length === 0) return null;
        throw new RangeError("The last line has no end");
      }
    }
  }

  async take(length: number): Promise<Uint8Array> {
    if (!Number.isSafeInteger(length) || length < 0) throw new RangeError("A length makes no sense");
    const parts: Uint8Array[] = [];
    let missing = length;
    for (;;) {
      const part = this.#buffer.subarray(0, missing);
      this.#buffer = this.#buffer.subarray(part.length);
      missing -= part.length;
      if (missing === 0) return parts.length === 0 ? part : joined([...parts, part]);
      if (part.length > 0) parts.push(part.slice());
      if (!await this.#more()) throw new RangeError("The last row has no end");
    }
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (done) return false;
    this.#buffer = this.#buffer.length === 0 ? value : joined([this.#buffer, value]);
    return true;
  }
}
