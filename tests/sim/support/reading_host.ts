/** Readers of the simulation: the real engine behind the hub's port. The simulation decides when each step happens. */
import { openReaderDatabase, type ReaderDatabase } from "../../../mod/engine/mod.ts";
import type { FunctionCall, QueryAnswer, QueryBatchRun } from "../../../mod/functions/host_port.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";
import { HostDouble, unknownFunction } from "../../support/host_double.ts";
import { mutations, queries } from "./app.ts";
import { runQuery, schema } from "./engine_runs.ts";
import type { Random } from "./random.ts";

interface RunningBatch {
  readonly queries: readonly FunctionCall[];
  readonly onAnswer: (index: number, answer: QueryAnswer) => void;
  readonly pinned: PromiseWithResolvers<number>;
  readonly done: PromiseWithResolvers<void>;
  left: number;
}

/** Queries of a batch that one reader has. */
interface Part {
  readonly batch: RunningBatch;
  readonly indices: number[];
}

interface Reader {
  readonly database: ReaderDatabase;
  part: Part | null;
  /** `null` until the snapshot is open. */
  ts: number | null;
}

export abstract class ReadingHost extends HostDouble implements Disposable {
  protected readonly random: Random;
  #readers: Reader[] = [];
  readonly #unpinned: RunningBatch[] = [];
  /** Parts of batches whose reader died. */
  readonly #lost: Part[] = [];

  constructor(random: Random) {
    super({ queries, mutations });
    this.random = random;
  }

  /** Must be called when there is a database with the app's tables. */
  protected openReaders(path: string, count: number): void {
    this.#readers = Array.from({ length: count }, () => {
      const database = openReaderDatabase(path);
      database.useSchema(schema);
      return { database, part: null, ts: null };
    });
  }

  [Symbol.dispose](): void {
    for (const { database } of this.#readers) database[Symbol.dispose]();
    this.#readers = [];
  }

  get hasFreeReader(): boolean {
    return this.#unpinned.length === 0 && this.#lost.length === 0 &&
      this.#readers.some(({ part }) => part === null);
  }

  act({ udfPath, args, identity }: FunctionCall): Promise<Outcome> {
    if (udfPath !== "echo") return Promise.resolve(unknownFunction(udfPath));
    const value = JSON.stringify({ args, principal: identity.principal });
    return Promise.resolve({ ok: true, value, logLines: [] });
  }

  startQueryBatch(
    asked: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
  ): QueryBatchRun {
    const batch: RunningBatch = {
      queries: asked,
      onAnswer,
      pinned: Promise.withResolvers(),
      done: Promise.withResolvers(),
      left: asked.length,
    };
    this.#unpinned.push(batch);
    return { pinned: batch.pinned.promise, done: batch.done.promise };
  }

  /** Whether readers have anything to do. */
  protected get reading(): boolean {
    return this.#unpinned.length > 0 || this.#lost.length > 0 ||
      this.#readers.some(({ part }) => part !== null);
  }

  /** Opens the snapshots of the oldest batch that has none, and of what lost readers left. */
  pin(): void {
    const free = this.#readers.filter(({ part }) => part === null);
    const lost = this.#lost.shift();
    if (lost !== undefined) {
      const [reader] = free;
      if (reader === undefined) this.#lost.unshift(lost);
      else this.#open(reader, lost);
      return;
    }
    const batch = this.#unpinned[0];
    if (batch === undefined || free.length === 0) return;
    this.#unpinned.shift();
    const parts = Math.min(free.length, batch.queries.length, 1 + this.random.below(2));
    let ts = 0;
    for (let p = 0; p < parts; p++) {
      const reader = free[p];
      const indices = [...batch.queries.keys()].filter((index) => index % parts === p);
      if (reader !== undefined) ts = this.#open(reader, { batch, indices });
    }
    batch.pinned.resolve(ts);
  }

  /** A reader answers the next of its queries. */
  answer(): void {
    const working = this.#readers.filter(({ part }) => part !== null);
    if (working.length === 0) return;
    const reader = this.random.pick(working);
    const index = reader.part?.indices.shift();
    const { part, ts } = reader;
    if (part === null || ts === null || index === undefined) throw new Error("A reader without work works");
    const call = part.batch.queries[index];
    if (call === undefined) throw new Error("A reader runs what was not asked for");
    const answer = { ...runQuery(reader.database, call), durationMs: this.random.below(100), ts };
    if (part.indices.length === 0) this.#close(reader);
    part.batch.onAnswer(index, answer);
    if (--part.batch.left === 0) part.batch.done.resolve();
    if (reader.part === null) this.#notifyFree();
  }

  /** Kills a reader. Its remaining queries run at a newer snapshot. */
  killReader(): void {
    const working = this.#readers.filter(({ part }) => part !== null);
    if (working.length === 0) return;
    const reader = this.random.pick(working);
    if (reader.part !== null) this.#lost.push(reader.part);
    this.#close(reader);
  }

  #notifyFree(): void {
    if (this.hasFreeReader) this.notifyReaderFree();
  }

  #open(reader: Reader, part: Part): number {
    reader.part = part;
    reader.ts = reader.database.openSnapshot();
    return reader.ts;
  }

  #close(reader: Reader): void {
    reader.database.closeSnapshot();
    reader.part = null;
    reader.ts = null;
  }
}
