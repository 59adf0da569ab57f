/**
 * A log of rows that lies elsewhere than in segments, with snapshots beside it, as a replica that can be restored from. Nothing
 * is written to it.
 */
import { type JournalRow, rowTimes } from "../../../engine/mod.ts";
import { GENERATIONS, MARKER, parseName, segmentFile, snapshotFile } from "../names.ts";
import { markerBytes } from "../replica_marker.ts";
import { ReplicaError } from "../replica_error.ts";
import { packSegment } from "../segment.ts";
import type { ReplicaTarget, TargetObject } from "./replica_target.ts";

export interface LoggedSnapshot {
  /** The row that it ends with, its ts and its chained sum. */
  readonly seq: number;
  readonly ts: number;
  readonly sum: string;
  /** Not before its newest commit, ms since the epoch. */
  readonly at: number;
  readonly bytes: number;
}

/** Where rows and snapshots are. Methods throw a `ReplicaError`. */
export interface LogSource extends AsyncDisposable {
  /** For people. */
  readonly location: string;
  readonly generation: string;
  /** Those that are there, the oldest first. */
  snapshots(): Promise<readonly LoggedSnapshot[]>;
  /** The number of the newest row; 0: there is none. */
  end(): Promise<number>;
  /** Rows behind one, up to another, in their order: as many as are read at once. None: there are none of them. */
  rowsBehind(seq: number, upTo: number): Promise<readonly JournalRow[]>;
  /** Brings the snapshot of a row into a file, which must not be there; `false` when there is none. */
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

  /** A segment is packed when it is asked for: who reads it checks that its rows follow one another, as of any other. */
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

  /** Rows that are read from the log at once are no more than fit into memory. */
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
      throw this.#trimmed(`The snapshot of ts ${snapshot.ts} is not kept any more`);
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

  /** Throws a `ReplicaError` unless the row behind one is there. */
  async #next(
    seq: number,
    upTo: number,
  ): Promise<
    { readonly rows: readonly JournalRow[]; readonly first: JournalRow; readonly last: JournalRow }
  > {
    const rows = await this.#source.rowsBehind(seq, upTo);
    const [first, last] = [rows[0], rows.at(-1)];
    if (first?.seq === seq + 1 && last !== undefined) return { rows, first, last };
    throw this.#trimmed(`Row ${seq + 1} is not in the log any more`);
  }

  /** Nothing is damaged then, and asking again shows what there is. */
  #trimmed(what: string): ReplicaError {
    return new ReplicaError(
      "asked",
      `${what}: while "${this.location}" was read its servers have made another snapshot, and have removed what only older ones ` +
        "than the two that they keep need. Try again, and choose a newer point if this one is gone: --list shows what there is",
    );
  }

  #refuse(): Promise<never> {
    return Promise.reject(new ReplicaError("asked", `Nothing is written to "${this.location}" from here`));
  }
}
