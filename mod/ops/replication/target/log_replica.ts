/**
 * A read-only replica for restores whose rows are in a log instead of segments, with snapshots beside it.
 */
import { type JournalRow, rowTimes } from "../../../engine/mod.ts";
import { GENERATIONS, MARKER, parseName, segmentFile, snapshotFile } from "../names.ts";
import { markerBytes } from "../replica_marker.ts";
import { ReplicaError } from "../replica_error.ts";
import { packSegment } from "../segment.ts";
import type { ReplicaTarget, TargetObject } from "./replica_target.ts";

export interface LoggedSnapshot {
  /** Its last row, with ts and chained checksum. */
  readonly seq: number;
  readonly ts: number;
  readonly sum: string;
  /** Not before its newest commit, ms since the epoch. */
  readonly at: number;
  readonly bytes: number;
}

/** Source of rows and snapshots. Methods throw a `ReplicaError`. */
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
  /** Downloads the snapshot of a row into a new file; `false` if there is none. */
  download(seq: number, path: string): Promise<boolean>;
}

export class LogReplica implements ReplicaTarget {
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
  async *list(begin: string): AsyncIterable<TargetObject> {
    if (!begin.startsWith(GENERATIONS)) return;
    const { generation } = this.#source;
    const snapshots = await this.#source.snapshots();
    for (const { bytes, ...snapshot } of snapshots) {
      yield { name: snapshotFile({ generation, ...snapshot }), size: bytes };
    }
    const [oldest] = snapshots;
    if (oldest === undefined) return;
    const end = await this.#source.end();
    for (let { seq, sum: prev } = oldest; seq < end;) {
      const next = snapshots.find((snapshot) => snapshot.seq > seq)?.seq ?? end;
      const { rows, first, last } = await this.#next(seq, Math.min(next, end));
      const times = rows.map(rowTimes);
      const name = segmentFile({
        generation,
        fromTs: first.tsBefore + 1,
        toTs: last.ts,
        fromSeq: first.seq,
        toSeq: last.seq,
        minAt: Math.min(...times.map((time) => time.first)),
        maxAt: Math.max(...times.map((time) => time.last)),
        prev,
        sum: last.sum,
        level: 0,
      });
      yield { name, size: rows.reduce((sum, { body }) => sum + body.length, 0) };
      ({ seq, sum: prev } = last);
    }
  }

  /** Packs a segment on request. The reader verifies its rows like those of any segment. */
  async read(name: string): Promise<Uint8Array<ArrayBuffer> | null> {
    if (name === MARKER) return markerBytes();
    const segment = parseName(name);
    if (segment?.kind !== "segment" || segment.generation !== this.#source.generation) return null;
    const { generation, prev, level, fromSeq, toSeq } = segment;
    const rows: JournalRow[] = [];
    for (let seq = fromSeq - 1; seq < toSeq;) {
      const more = await this.#next(seq, toSeq);
      rows.push(...more.rows);
      ({ seq } = more.last);
    }
    return (await packSegment(rows, { generation, prev, level })).bytes;
  }

  /** Reads a bounded number of rows at once. */
  async stream(name: string): Promise<AsyncIterable<Uint8Array<ArrayBuffer>> | null> {
    const bytes = await this.read(name);
    return bytes === null ? null : ReadableStream.from([bytes]);
  }

  async download(name: string, path: string): Promise<boolean> {
    const snapshot = parseName(name);
    if (snapshot?.kind !== "snapshot" || snapshot.generation !== this.#source.generation) return false;
    let failure: unknown = null;
    const isThere = await this.#source.download(snapshot.seq, path).catch((error: unknown) => {
      failure = error;
      return false;
    });
    if (isThere) return true;
    const kept = await this.#source.snapshots();
    if (!kept.some(({ seq }) => seq === snapshot.seq)) {
      throw this.#trimmed(`The snapshot of ts ${snapshot.ts} no longer exists`);
    }
    if (failure !== null) throw failure;
    return false;
  }

  put(): Promise<void> {
    return this.#refuse();
  }

  upload(): Promise<void> {
    return this.#refuse();
  }

  create(): Promise<boolean> {
    return this.#refuse();
  }

  remove(): Promise<void> {
    return this.#refuse();
  }

  removeLeftovers(): Promise<void> {
    return this.#refuse();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source[Symbol.asyncDispose]();
  }

  /** Throws a `ReplicaError` if the row after one is missing. */
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
  #trimmed(what: string): ReplicaError {
    return new ReplicaError(
      "asked",
      `${what}: while "${this.location}" was read, its servers made another snapshot and removed rows that only older ones ` +
        "need. Try again. If this point is no longer restorable, choose a newer one: --list shows the restorable ranges",
    );
  }

  #refuse(): Promise<never> {
    return Promise.reject(new ReplicaError("asked", `"${this.location}" is read-only`));
  }
}
