/**
 * The isolates of the simulation: the real engine in this process behind the port the hub knows, every step (commit, pin,
 * answer, death) taken when the simulation says so.
 */
import assert from "node:assert/strict";
import {
  type CommitEntry,
  openReaderDatabase,
  openWriterDatabase,
  type ReaderDatabase,
  type ReadTransaction,
  type SchemaDefinition,
  type Value,
  type WriterDatabase,
  type WriteTransaction,
} from "../../../mod/engine/mod.ts";
import type {
  FunctionCall,
  MutationAnswer,
  MutationCall,
  QueryAnswer,
  Wave,
} from "../../../mod/functions/host_port.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";
import { HostDouble, outcomeOf, unknownFunction, WatchedCaller } from "../../support/host_double.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { mutations, queries, type Row, type Rows, type WritableRows } from "./app.ts";
import { callerOf, type Oracle } from "./oracle.ts";
import type { Random } from "./random.ts";

const schema: SchemaDefinition = new Map([["rows", {
  indexes: [{ name: "by_k", fields: ["k"] }, { name: "by_group", fields: ["g", "k"] }],
  searchIndexes: [],
  vectorIndexes: [],
  validate: (fields) => fields as Record<string, Value>,
}]]);

interface PendingMutation {
  readonly call: MutationCall;
  readonly resolve: (answer: MutationAnswer) => void;
}

interface RunningWave {
  readonly queries: readonly FunctionCall[];
  readonly onAnswer: (index: number, answer: QueryAnswer) => void;
  readonly pinned: PromiseWithResolvers<number>;
  readonly done: PromiseWithResolvers<void>;
  left: number;
}

/** Queries of a wave that one reader has. */
interface Part {
  readonly wave: RunningWave;
  readonly indices: number[];
}

interface Reader {
  readonly database: ReaderDatabase;
  part: Part | null;
  /** `null` until the snapshot is open. */
  ts: number | null;
}

/** A group that is committed but of which main has not heard. */
interface CommittedGroup {
  readonly entries: readonly CommitEntry[];
  readonly answered: readonly { readonly mutation: PendingMutation; readonly answer: MutationAnswer }[];
}

export interface EngineHostOptions {
  readonly random: Random;
  readonly oracle: Oracle;
  readonly readers: number;
  /** Records mutations without their caller: one of the bugs the simulation has to find. */
  readonly forgetCaller?: boolean;
}

export class EngineHost extends HostDouble implements Disposable {
  readonly #folder = new TempFolder();
  readonly #options: EngineHostOptions;
  readonly #writer: WriterDatabase;
  readonly #readers: Reader[];
  readonly #queued: PendingMutation[] = [];
  readonly #unpinned: RunningWave[] = [];
  /** Parts whose reader died. */
  readonly #lost: Part[] = [];
  #untold: CommittedGroup | null = null;
  #ts = 0;

  constructor(options: EngineHostOptions) {
    super({ queries, mutations });
    this.#options = options;
    const path = this.#folder.at("data.db");
    this.#writer = openWriterDatabase(path);
    this.#writer.applySchema(schema);
    this.#readers = Array.from({ length: options.readers }, () => {
      const database = openReaderDatabase(path);
      database.useSchema(schema);
      return { database, part: null, ts: null };
    });
  }

  [Symbol.dispose](): void {
    for (const { database } of this.#readers) database[Symbol.dispose]();
    this.#writer[Symbol.dispose]();
    this.#folder[Symbol.dispose]();
  }

  get ts(): number {
    return this.#ts;
  }

  get readerFree(): boolean {
    return this.#unpinned.length === 0 && this.#lost.length === 0 &&
      this.#readers.some(({ part }) => part === null);
  }

  act({ udfPath, args, identity }: FunctionCall): Promise<Outcome> {
    if (udfPath !== "echo") return Promise.resolve(unknownFunction(udfPath));
    const value = JSON.stringify({ args, principal: identity.principal });
    return Promise.resolve({ ok: true, value, logLines: [] });
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    const { promise, resolve } = Promise.withResolvers<MutationAnswer>();
    this.#queued.push({ call, resolve });
    return promise;
  }

  startWave(
    asked: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
  ): Wave {
    const wave: RunningWave = {
      queries: asked,
      onAnswer,
      pinned: Promise.withResolvers(),
      done: Promise.withResolvers(),
      left: asked.length,
    };
    this.#unpinned.push(wave);
    return { pinned: wave.pinned.promise, done: wave.done.promise };
  }

  /** Whether any step can be taken. */
  get busy(): boolean {
    return this.#queued.length > 0 || this.#untold !== null || this.#unpinned.length > 0 ||
      this.#lost.length > 0 || this.#readers.some(({ part }) => part !== null);
  }

  /** Commits a group of waiting mutations; main hears of it now, or later as after the writer's death. */
  commit({ count, tell }: { readonly count: number; readonly tell: boolean }): void {
    if (this.#untold !== null) return this.tell();
    const group = this.#queued.splice(0, count);
    if (group.length === 0) return;
    this.#writer.openGroup();
    const entries: CommitEntry[] = [];
    const answered = group.map((mutation) => ({ mutation, answer: this.#run(mutation.call, entries) }));
    this.#writer.commitGroup("");
    for (const { mutation, answer } of answered) this.#compare(mutation.call, answer);
    this.#untold = { entries, answered };
    if (tell) this.tell();
  }

  /** The writer dies inside a group: nothing of it has happened, its calls run again later. */
  dieBeforeCommit(count: number): void {
    if (this.#untold !== null || this.#queued.length === 0) return;
    this.#writer.openGroup();
    for (const { call } of this.#queued.slice(0, count)) this.#run(call, []);
    this.#writer.rollbackGroup();
  }

  /** Main hears of a committed group. */
  tell(): void {
    const group = this.#untold;
    if (group === null) return;
    this.#untold = null;
    this.#ts = this.#writer.ts;
    this.tellCommits(group.entries);
    for (const { mutation, answer } of group.answered) mutation.resolve(answer);
  }

  /** Opens the snapshots of the oldest wave that has none, and of what lost readers left. */
  pin(): void {
    const free = this.#readers.filter(({ part }) => part === null);
    const lost = this.#lost.shift();
    if (lost !== undefined) {
      const [reader] = free;
      if (reader === undefined) this.#lost.unshift(lost);
      else this.#open(reader, lost);
      return;
    }
    const wave = this.#unpinned[0];
    if (wave === undefined || free.length === 0) return;
    this.#unpinned.shift();
    const parts = Math.min(free.length, wave.queries.length, 1 + this.#options.random.below(2));
    let ts = 0;
    for (let p = 0; p < parts; p++) {
      const reader = free[p];
      const indices = [...wave.queries.keys()].filter((index) => index % parts === p);
      if (reader !== undefined) ts = this.#open(reader, { wave, indices });
    }
    wave.pinned.resolve(ts);
  }

  /** A reader answers the next of its queries. */
  answer(): void {
    const working = this.#readers.filter(({ part }) => part !== null);
    if (working.length === 0) return;
    const reader = this.#options.random.pick(working);
    const index = reader.part?.indices.shift();
    const { part, ts } = reader;
    if (part === null || ts === null || index === undefined) throw new Error("A reader without work works");
    const call = part.wave.queries[index];
    if (call === undefined) throw new Error("A reader runs what was not asked for");
    const answer = { ...this.#query(reader.database, call), ts };
    if (part.indices.length === 0) this.#close(reader);
    part.wave.onAnswer(index, answer);
    if (--part.wave.left === 0) part.wave.done.resolve();
    if (reader.part === null) this.#tellFree();
  }

  /** A reader dies: what it had left runs at a newer snapshot. */
  killReader(): void {
    const working = this.#readers.filter(({ part }) => part !== null);
    if (working.length === 0) return;
    const reader = this.#options.random.pick(working);
    if (reader.part !== null) this.#lost.push(reader.part);
    this.#close(reader);
  }

  #tellFree(): void {
    if (this.readerFree) this.tellReaderFree();
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

  #query(database: ReaderDatabase, { udfPath, args, identity }: FunctionCall): Omit<QueryAnswer, "ts"> {
    const transaction = database.beginQuery();
    const caller = new WatchedCaller(identity);
    const query = queries[udfPath];
    const outcome = query === undefined
      ? unknownFunction(udfPath)
      : outcomeOf(() => query(readRows(transaction), caller, args));
    return {
      outcome,
      readSet: transaction.readSet(),
      scope: caller.scope,
      nondeterministic: false,
      durationMs: this.#options.random.below(100),
    };
  }

  #run(call: MutationCall, entries: CommitEntry[]): MutationAnswer {
    const principal = this.#options.forgetCaller ? null : call.identity.principal;
    const key = call.replay && { ...call.replay, principal };
    const recorded = key === undefined ? null : this.#writer.findRecord(key);
    if (recorded !== null) {
      return { ...(JSON.parse(recorded) as Pick<MutationAnswer, "outcome" | "ts">), replayed: true };
    }
    const transaction = this.#writer.beginMutation({ at: 1_700_000_000_000 });
    const mutation = mutations[call.udfPath];
    const outcome = call.failedWith !== undefined
      ? { ok: false as const, error: call.failedWith, logLines: [] }
      : mutation === undefined
      ? unknownFunction(call.udfPath)
      : outcomeOf(() => mutation(writeRows(transaction), callerOf(call.identity), call.args));
    if (outcome.ok) {
      const entry = this.#writer.releaseMutation();
      if (entry !== null) entries.push(entry);
    } else {
      this.#writer.rollbackMutation();
    }
    const { ts } = this.#writer;
    if (key !== undefined) this.#writer.saveRecord(key, JSON.stringify({ outcome, ts }));
    return { outcome, ts, replayed: false };
  }

  /** The engine and the model must agree on every mutation. */
  #compare(call: MutationCall, { outcome, ts }: MutationAnswer): void {
    const expected = this.#options.oracle.mutate(call);
    const what = `${call.udfPath} ${JSON.stringify(call.args)} by ${call.identity.principal}`;
    assert.equal(ts, expected.ts, `ts of ${what}`);
    assert.equal(outcome.ok, expected.answer.ok, `success of ${what}`);
    if (outcome.ok && expected.answer.ok) {
      assert.deepEqual(JSON.parse(outcome.value), expected.answer.value, `result of ${what}`);
    }
  }
}

function readRows(transaction: ReadTransaction): Rows {
  const scan = (index: string, eq: Value[]): (Row & { readonly _id: string })[] => {
    const rows = [...transaction.scan("rows", index, { eq }, { order: "asc" })];
    return rows.map(({ doc }) => doc as unknown as Row & { _id: string });
  };
  return {
    get: (k) => plain(scan("by_k", [k])[0]),
    group: (g) => scan("by_group", [g]).flatMap((row) => plain(row) ?? []),
    all: () => scan("by_group", []).flatMap((row) => plain(row) ?? []),
  };
}

function writeRows(transaction: WriteTransaction): WritableRows {
  const idOf = (k: string): string | undefined =>
    [...transaction.scan("rows", "by_k", { eq: [k] }, { order: "asc" })][0]?.doc._id;
  return {
    ...readRows(transaction),
    put: (row) => {
      const id = idOf(row.k);
      if (id === undefined) transaction.insert("rows", { ...row });
      else transaction.replace(id, { ...row });
    },
    remove: (k) => {
      const id = idOf(k);
      if (id !== undefined) transaction.delete(id);
    },
  };
}

function plain(row: Row | undefined): Row | null {
  return row === undefined ? null : { k: row.k, g: row.g, n: row.n, owner: row.owner };
}
