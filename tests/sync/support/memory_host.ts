/**
 * A FunctionHost in memory for tests of the hub: a small ordered map with snapshots and read sets, functions in plain
 * TypeScript, with every step (commit, pin, answer) controlled by the test or immediate.
 */
import type { CommitEntry, Interval, ReadSet } from "../../../mod/engine/types.ts";
import {
  type FollowedGroup,
  type FunctionCall,
  type MutationAnswer,
  type MutationCall,
  type QueryAnswer,
  type QueryBatchRun,
  unknownReads,
} from "../../../mod/functions/host_port.ts";
import type { Identity } from "../../../mod/functions/identity.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";
import {
  failureOf,
  HostDouble,
  outcomeOf,
  unknownFunction,
  WatchedCaller,
} from "../../support/host_double.ts";

export { ArgsError } from "../../support/host_double.ts";

/** The view of a function. */
export interface MemoryContext {
  get(key: string): unknown;
  /** Keys from `lo` to below `hi`, with their values. */
  range(lo: string, hi: string): [key: string, value: unknown][];
  set(key: string, value: unknown): void;
  delete(key: string): void;
  principal(): string | null;
  session(): string | null;
  now(): number;
  log(line: string): void;
}

export type MemoryFunction = (ctx: MemoryContext, args: Record<string, unknown>) => unknown;

interface PendingBatch {
  readonly queries: readonly FunctionCall[];
  readonly onAnswer: (index: number, answer: QueryAnswer) => void;
  readonly pin: (ts: number) => void;
  readonly end: () => void;
  readonly left: Set<number>;
  snapshot: { readonly ts: number; readonly state: ReadonlyMap<string, unknown> } | null;
}

interface PendingMutation {
  readonly call: MutationCall;
  readonly resolve: (answer: MutationAnswer) => void;
}

export interface MemoryHostOptions {
  readonly queries?: Record<string, MemoryFunction>;
  readonly mutations?: Record<string, MemoryFunction>;
  readonly actions?: Record<string, (args: Record<string, unknown>, identity: Identity) => unknown>;
  /** Runs every step immediately. `false` for tests that control the steps. */
  readonly auto?: boolean;
  /** Batches that may run concurrently. */
  readonly readers?: number;
}

export class MemoryHost extends HostDouble {
  ts = 0;
  /** Started runs by `path args`, to count skipped runs. */
  readonly runs: string[] = [];
  mutationRuns = 0;
  readonly refreshBatches: PendingBatch[] = [];
  readonly queued: PendingMutation[] = [];
  auto: boolean;
  /** Queries whose runs do not report their reads. */
  readonly unknownReads = new Set<string>();
  /** Reported durations of runs. Default: 1 ms. */
  readonly durationsMs = new Map<string, number>();
  /** Whether its commits appear as those of another server. */
  follows = false;
  /** Number of such commits made for a listener. */
  groupsMade = 0;
  /** While set, the listeners receive commits late. */
  muted = false;
  #unpublished: CommitEntry[] = [];
  #state: ReadonlyMap<string, unknown> = new Map();
  readonly #queries: Record<string, MemoryFunction>;
  readonly #mutations: Record<string, MemoryFunction>;
  readonly #actions: NonNullable<MemoryHostOptions["actions"]>;
  readonly #readers: number;
  readonly #records = new Map<string, MutationAnswer>();

  constructor(
    { queries = {}, mutations = {}, actions = {}, auto = true, readers = 2 }: MemoryHostOptions = {},
  ) {
    super({ queries, mutations, actions });
    this.#queries = queries;
    this.#mutations = mutations;
    this.#actions = actions;
    this.#readers = readers;
    this.auto = auto;
  }

  get hasFreeReader(): boolean {
    return this.refreshBatches.length < this.#readers;
  }

  /** Replaces a query's code. */
  define(udfPath: string, query: MemoryFunction): void {
    this.#queries[udfPath] = query;
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    return new Promise((resolve) => {
      this.queued.push({ call, resolve });
      if (this.auto && this.queued.length === 1) queueMicrotask(() => this.commit());
    });
  }

  act(call: FunctionCall): Promise<Outcome> {
    const action = this.#actions[call.udfPath];
    if (action === undefined) return Promise.resolve(unknownFunction(call.udfPath));
    return Promise.resolve().then(() => action(call.args, call.identity)).then(
      (value): Outcome => ({ ok: true, value: JSON.stringify(value ?? null), logLines: [] }),
      failureOf,
    );
  }

  /** Commits a change as one group, and notifies the listeners. */
  write(change: Record<string, unknown>): number {
    const ctx = new Run(this.#state, { principal: null, userId: null, adminId: null, sessionId: null });
    for (const [key, value] of Object.entries(change)) {
      if (value === undefined) ctx.delete(key);
      else ctx.set(key, value);
    }
    this.#send([this.#apply(ctx)]);
    return this.ts;
  }

  /** Runs queued mutations as one group, notifies the listeners, then answers. */
  commit(count = Infinity): void {
    const group = this.queued.splice(0, count);
    const entries: CommitEntry[] = [];
    const answers = group.map(({ call }) => this.#mutate(call, entries));
    this.#send(entries);
    group.forEach(({ resolve }, i) => {
      const answer = answers[i];
      if (answer !== undefined) resolve(answer);
    });
  }

  startQueryBatch(
    queries: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
  ): QueryBatchRun {
    const pinned = Promise.withResolvers<number>();
    const done = Promise.withResolvers<void>();
    const batch: PendingBatch = {
      queries,
      onAnswer,
      pin: pinned.resolve,
      end: done.resolve,
      left: new Set(queries.keys()),
      snapshot: null,
    };
    this.refreshBatches.push(batch);
    if (this.auto) {
      this.pin();
      queueMicrotask(() => this.answerAll(batch));
    }
    return { pinned: pinned.promise, done: done.promise };
  }

  /** Opens the snapshot of the newest batch. */
  pin(): void {
    const batch = this.refreshBatches[this.refreshBatches.length - 1];
    if (batch === undefined || batch.snapshot !== null) return;
    batch.snapshot = { ts: this.ts, state: this.#state };
    batch.pin(this.ts);
  }

  /** Answers one running query. */
  answer(udfPath: string, batch: PendingBatch | undefined = this.#batchOf(udfPath)): void {
    const index = batch?.queries.findIndex((query, i) => query.udfPath === udfPath && batch.left.has(i)) ??
      -1;
    if (batch === undefined || index < 0) throw new Error(`No run of ${udfPath} is running`);
    this.#answer(batch, index);
  }

  answerAll(batch: PendingBatch | undefined = this.refreshBatches[0]): void {
    for (const index of [...batch?.left ?? []]) if (batch !== undefined) this.#answer(batch, index);
  }

  /** Running paths, batch by batch. */
  get pathsInFlight(): string[][] {
    return this.refreshBatches.map((batch) => [...batch.left].map((i) => batch.queries[i]?.udfPath ?? ""));
  }

  /** The expected result of a query, computed directly. */
  peek(call: Pick<FunctionCall, "udfPath" | "args" | "identity">): Outcome {
    return this.#query(this.#state, call).outcome;
  }

  #batchOf(udfPath: string): PendingBatch | undefined {
    return this.refreshBatches.find((batch) =>
      batch.queries.some((query, i) => query.udfPath === udfPath && batch.left.has(i))
    );
  }

  #answer(batch: PendingBatch, index: number): void {
    const call = batch.queries[index];
    if (call === undefined || batch.snapshot === null) throw new Error("The batch has no snapshot yet");
    this.runs.push(`${call.udfPath} ${JSON.stringify(call.args)}`);
    batch.left.delete(index);
    const answer = { ...this.#query(batch.snapshot.state, call), ts: batch.snapshot.ts };
    batch.onAnswer(index, answer);
    if (batch.left.size > 0) return;
    this.refreshBatches.splice(this.refreshBatches.indexOf(batch), 1);
    batch.end();
    this.notifyReaderFree();
  }

  #query(
    state: ReadonlyMap<string, unknown>,
    { udfPath, args, identity }: Pick<FunctionCall, "udfPath" | "args" | "identity">,
  ): Omit<QueryAnswer, "ts"> {
    const run = new Run(state, identity);
    const query = this.#queries[udfPath];
    const outcome = query === undefined
      ? unknownFunction(udfPath)
      : outcomeOf(() => query(run, args), run.logLines);
    return {
      outcome,
      readSet: this.unknownReads.has(udfPath) ? unknownReads : run.readSet,
      scope: run.scope,
      nondeterministic: run.nondeterministic,
      durationMs: this.durationsMs.get(udfPath) ?? 1,
    };
  }

  #mutate(call: MutationCall, entries: CommitEntry[]): MutationAnswer {
    const key = call.replay &&
      JSON.stringify([call.replay.sessionId, call.replay.requestId, call.identity.principal]);
    const recorded = key === undefined ? undefined : this.#records.get(key);
    if (recorded !== undefined) {
      return { ...recorded, replayed: true, outcome: { ...recorded.outcome, logLines: [] } };
    }
    if (call.failedWith === undefined) this.mutationRuns++;
    const run = new Run(this.#state, call.identity);
    const mutation = this.#mutations[call.udfPath];
    const outcome: Outcome = call.failedWith !== undefined
      ? { ok: false, error: call.failedWith, logLines: [] }
      : mutation === undefined
      ? unknownFunction(call.udfPath)
      : outcomeOf(() => mutation(run, call.args), run.logLines);
    if (outcome.ok && run.changed.size > 0) entries.push(this.#apply(run));
    const answer = { outcome, ts: this.ts, replayed: false };
    if (key !== undefined) this.#records.set(key, answer);
    return answer;
  }

  #apply(run: Run): CommitEntry {
    const before = this.#state;
    this.#state = run.state;
    this.ts++;
    return {
      ts: this.ts,
      at: 0,
      changes: [...run.changed].map((key) => ({
        table: "map",
        tableNumber: 1,
        id: key,
        keys: [["t1", before.has(key) ? key : null, run.state.has(key) ? key : null]] as const,
      })),
    };
  }

  notifyMuted(): void {
    const entries = this.#unpublished;
    this.#unpublished = [];
    this.#send(entries);
  }

  #send(entries: readonly CommitEntry[]): void {
    if (this.muted) this.#unpublished.push(...entries);
    else if (this.follows) this.publishFollowed(this.#followed(entries));
    else this.publishCommits(entries);
  }

  #followed(entries: readonly CommitEntry[]): FollowedGroup {
    const keys = entries.flatMap(({ changes }) => changes.flatMap(({ keys }) => keys));
    return {
      ts: this.ts,
      count: entries.length,
      keySpaces: new Set(keys.map(([space]) => space)),
      changesSystemTables: false,
      entries: () => {
        this.groupsMade++;
        return entries;
      },
    };
  }
}

class Run extends WatchedCaller implements MemoryContext {
  readonly readSet: ReadSet = {};
  readonly changed = new Set<string>();
  readonly logLines: string[] = [];
  nondeterministic = false;
  readonly #state: ReadonlyMap<string, unknown>;
  #written: Map<string, unknown> | null = null;

  constructor(state: ReadonlyMap<string, unknown>, identity: Identity) {
    super(identity);
    this.#state = state;
  }

  get state(): ReadonlyMap<string, unknown> {
    return this.#written ?? this.#state;
  }

  get(key: string): unknown {
    this.#read([key]);
    return this.state.get(key);
  }

  range(lo: string, hi: string): [string, unknown][] {
    this.#read([lo, hi]);
    return [...this.state].filter(([key]) => lo <= key && key < hi).sort((a, b) => a[0] < b[0] ? -1 : 1);
  }

  set(key: string, value: unknown): void {
    this.#written ??= new Map(this.#state);
    this.#written.set(key, value);
    this.changed.add(key);
  }

  delete(key: string): void {
    this.#written ??= new Map(this.#state);
    this.#written.delete(key);
    this.changed.add(key);
  }

  now(): number {
    this.nondeterministic = true;
    return clockReads++;
  }

  log(line: string): void {
    this.logLines.push(line);
  }

  #read(interval: Interval): void {
    (this.readSet["t1"] ??= []).push(interval);
  }
}

/** A clock that never returns the same time twice. */
let clockReads = 1;
