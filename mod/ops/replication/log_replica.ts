/**
 * A read-only replica for restores whose rows are in a log instead of segments, with snapshots beside it.
 */
import { type JournalRow, rowTimes } from "../../engine/mod.ts";
import { LocationError, type ObjectBody, type ObjectInfo } from "../../kit/locations/object_store.ts";
import {
  GENERATIONS,
  MARKER,
  parseName,
  segmentFile,
  type SegmentName,
  snapshotFile,
  type SnapshotName,
} from "./names.ts";
import { markerBytes, type ReplicaReader } from "./replica_target.ts";
import { packSegment } from "./segment.ts";

export interface LoggedSnapshot {
  /** Its last row, with ts and chained checksum. */
  readonly seq: number;
  readonly ts: number;
  readonly sum: string;
  /** Not before its newest commit, ms since the epoch. */
  readonly at: number;
  readonly bytes: number;
}

/** Source of rows and snapshots. Methods throw a `LocationError`. */
export interface LogSource extends AsyncDisposable {
  /** Display name. */
  readonly location: string;
  readonly generation: string;
  /** Returns the existing snapshots, oldest first. */
  snapshots(): Promise<readonly LoggedSnapshot[]>;
  /** Returns the number of the newest row; 0 without rows. */
  end(): Promise<number>;
  /** Returns rows after one, up to another, in order. Returns a bounded number of them, and none if there are none. */
  rowsBehind(seq: number, upTo: number): Promise<readonly JournalRow[]>;
  /** Returns the archive of the snapshot of a row; `null` if there is none. */
  open(seq: number): Promise<ObjectBody | null>;
}

export class LogReplica implements ReplicaReader {
  readonly isTrimmed = true;
  readonly #source: LogSource;

  constructor(source: LogSource) {
    this.#source = source;
  }

  get location(): string {
    return this.#source.location;
  }

  /**
   * Reads the whole log up to its end at the start of the listing, because only a row has its times. Each
   * read is one segment. No segment extends past a snapshot: rows after a snapshot are kept as long as it is.
   */
  async *list(begin: string): AsyncIterable<ObjectInfo> {
    if (!begin.startsWith(GENERATIONS)) return;
    const { generation } = this.#source;
    const snapshots = await this.#source.snapshots();
    for (const { bytes, ...snapshot } of snapshots) {
      yield { name: snapshotFile({ generation, ...snapshot }), size: bytes, writtenAt: snapshot.at };
    }
    const [oldest] = snapshots;
    if (oldest === undefined) return;
    const end = await this.#source.end();
    for (let { seq, sum: prev } = oldest; seq < end;) {
      const next = snapshots.find((snapshot) => snapshot.seq > seq)?.seq ?? end;
      const { rows, first, last } = await this.#next(seq, Math.min(next, end));
      const times = rows.map(rowTimes);
      const maxAt = Math.max(...times.map((time) => time.last));
      const name = segmentFile({
        generation,
        fromTs: first.tsBefore + 1,
        toTs: last.ts,
        fromSeq: first.seq,
        toSeq: last.seq,
        minAt: Math.min(...times.map((time) => time.first)),
        maxAt,
        prev,
        sum: last.sum,
        level: 0,
      });
      yield { name, size: rows.reduce((sum, { body }) => sum + body.length, 0), writtenAt: maxAt };
      ({ seq, sum: prev } = last);
    }
  }

  /** Only snapshots: the size of another object is unknown until it is read. */
  async head(name: string): Promise<ObjectInfo | null> {
    const snapshot = this.#own(name);
    if (snapshot?.kind !== "snapshot") return null;
    const { bytes, at } = await this.#listed(snapshot);
    return { name, size: bytes, writtenAt: at };
  }

  /** Packs a segment on request. The reader verifies its rows like those of any segment. */
  async get(name: string): Promise<ObjectBody | null> {
    if (name === MARKER) return ReadableStream.from([markerBytes()]);
    const object = this.#own(name);
    if (object === null) return null;
    if (object.kind === "segment") return ReadableStream.from([await this.#packed(object)]);
    const body = await this.#source.open(object.seq).catch((error) => this.#failed(error, object));
    if (body !== null) return ReadableStream.from(this.#chunks(body, object));
    await this.#listed(object);
    return null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source[Symbol.asyncDispose]();
  }

  #own(name: string): SnapshotName | SegmentName | null {
    const parsed = parseName(name);
    return parsed?.generation === this.#source.generation ? parsed : null;
  }

  async #packed({ generation, prev, level, fromSeq, toSeq }: SegmentName): Promise<Uint8Array<ArrayBuffer>> {
    const rows: JournalRow[] = [];
    for (let seq = fromSeq - 1; seq < toSeq;) {
      const more = await this.#next(seq, toSeq);
      rows.push(...more.rows);
      ({ seq } = more.last);
    }
    return (await packSegment(rows, { generation, prev, level })).bytes;
  }

  async *#chunks(body: ObjectBody, snapshot: SnapshotName): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    try {
      yield* body;
    } catch (error) {
      await this.#failed(error, snapshot);
    }
  }

  /** Throws the error of reading a snapshot, or that the snapshot was removed. */
  async #failed(error: unknown, snapshot: SnapshotName): Promise<never> {
    await this.#listed(snapshot);
    throw error;
  }

  /** Throws a `LocationError` if a snapshot was removed. */
  async #listed({ seq, ts }: SnapshotName): Promise<LoggedSnapshot> {
    const found = (await this.#source.snapshots()).find((snapshot) => snapshot.seq === seq);
    if (found !== undefined) return found;
    throw this.#trimmed(`The snapshot of ts ${ts} no longer exists`);
  }

  /** Throws a `LocationError` if the row after one is missing. */
  async #next(
    seq: number,
    upTo: number,
  ): Promise<
    { readonly rows: readonly JournalRow[]; readonly first: JournalRow; readonly last: JournalRow }
  > {
    const rows = await this.#source.rowsBehind(seq, upTo);
    const [first, last] = [rows[0], rows.at(-1)];
    if (first?.seq === seq + 1 && last !== undefined) return { rows, first, last };
    throw this.#trimmed(`Row ${seq + 1} is no longer in the log`);
  }

  /** Returns the error for removed rows: nothing is damaged, and another listing shows the current state. */
  #trimmed(what: string): LocationError {
    return new LocationError(
      "asked",
      `${what}: while "${this.location}" was read, its servers made another snapshot and removed rows that only older ones ` +
        "need. Try again. If this point is no longer restorable, choose a newer one: --list shows the restorable ranges",
    );
  }
}
