/**
 * A log of rows that lies elsewhere than in segments, with snapshots beside it, as a replica that can be restored from. Nothing
 * is written to it.
 */
import { type JournalRow, rowTimes } from "../../../engine/mod.ts";
import { GENERATIONS, MARKER, parseName, segmentFile, snapshotFile } from "../names.ts";
import { markerBytes } from "../place.ts";
import { ReplicaError } from "../replica_error.ts";
import { packSegment } from "../segment.ts";
import type { ReplicaTarget, TargetObject } from "./replica_target.ts";

/** A snapshot beside a log. */
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
  readonly place: string;
  readonly generation: string;
  /** Those that are there, the oldest first. */
  snapshots(): Promise<readonly LoggedSnapshot[]>;
  /** Rows behind one, some at a time, in their order; none: there are no more. */
  rowsBehind(seq: number): Promise<readonly JournalRow[]>;
  /** Brings the snapshot of a row into a file, which must not be there; `false` when there is none. */
  download(seq: number, path: string): Promise<boolean>;
}

export class LogReplica implements ReplicaTarget {
  readonly #source: LogSource;

  constructor(source: LogSource) {
    this.#source = source;
  }

  get place(): string {
    return this.#source.place;
  }

  /** The whole log is read for it: what times a row reaches stands in the row. */
  async *list(begin: string): AsyncIterable<TargetObject> {
    if (!begin.startsWith(GENERATIONS)) return;
    const { generation } = this.#source;
    const snapshots = await this.#source.snapshots();
    for (const { bytes, ...snapshot } of snapshots) {
      yield { name: snapshotFile({ generation, ...snapshot }), size: bytes };
    }
    const [oldest] = snapshots;
    if (oldest === undefined) return;
    let { seq, sum: prev } = oldest;
    for (;;) {
      const rows = await this.#source.rowsBehind(seq);
      const [first, last] = [rows[0], rows.at(-1)];
      if (first === undefined || last === undefined) return;
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
      const more = await this.#source.rowsBehind(seq);
      const [first, last] = [more[0], more.at(-1)];
      // They were removed meanwhile, because there is a newer snapshot.
      if (first?.seq !== seq + 1 || last === undefined) return null;
      rows.push(...more.filter((row) => row.seq <= toSeq));
      ({ seq } = last);
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
    return await this.#source.download(snapshot.seq, path);
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

  tidy(): Promise<void> {
    return this.#refuse();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source[Symbol.asyncDispose]();
  }

  #refuse(): Promise<never> {
    return Promise.reject(new ReplicaError("asked", `Nothing is written to "${this.place}" from here`));
  }
}
