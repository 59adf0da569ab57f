/**
 * Runs each distinct query once for all subscribers and one-shot calls that may share its result (docs/contract.md, SH).
 * Sockets subscribe; the hub runs one-shot calls, reports commits and starts refresh batches. A result is valid from the
 * snapshot of its run until a commit changes what it read. One-shot calls get a result valid at the newest `ts` known, or later.
 */
import type { CommitEntry, ReadSet } from "../../engine/types.ts";
import type {
  FollowedGroup,
  FunctionCall,
  FunctionHost,
  QueryAnswer,
  QueryBatchOptions,
} from "../../functions/host_port.ts";
import type { Identity } from "../../functions/identity.ts";
import { failed, type Outcome } from "../../functions/outcome.ts";
import { sharedQueryLimits } from "../limits.ts";
import { CommitMemory } from "./commit_memory.ts";
import { Invalidation, readsUnknown, sameReadSet } from "./invalidation.ts";
import { QueryTable } from "./query_table.ts";
import { RefreshQueue } from "./refresh_queue.ts";
import {
  type QuerySpec,
  type RefreshBatch,
  type Run,
  sameOutcome,
  scopes,
  type SharedQuery,
  type Subscriber,
  type Version,
  type View,
  type Waiter,
} from "./shared_query.ts";

export interface SharedQueriesOptions {
  readonly host: FunctionHost;
  readonly dev: boolean;
  /** Called when a batch may be worth starting. The owner then calls `startBatches` once for many such calls. */
  readonly onWork: () => void;
  /** Returns the views that have been stuck for `sharedQueryLimits.stuckSocketMs`. */
  readonly stuck: () => Iterable<View>;
  /** Characters of cached results. */
  readonly cachedCharsMax: number;
  /** Called with the function path when a result is served from cache. Optional. */
  readonly onCacheHit?: (udfPath: string) => void;
  /** Called after a run of a live query that read the clock or random values. Optional. */
  readonly onVolatile?: (query: SharedQuery) => void;
}

export type Requester = Pick<FunctionCall, "identity" | "caller" | "request" | "trace">;

/** Current load, and totals since the start. */
export interface QueryLoad {
  readonly subscriptions: number;
  /** Distinct queries, including cached ones. */
  readonly sharedQueries: number;
  readonly refreshBatches: number;
  readonly refreshBatchesInFlight: number;
  /** Queries that need a run and have none in flight. */
  readonly queriesWaiting: number;
  readonly callsWaiting: number;
}

export class SharedQueries {
  readonly #options: SharedQueriesOptions;
  readonly #table: QueryTable;
  readonly #index = new Invalidation<SharedQuery>();
  readonly #recentCommits: CommitMemory;
  /** Queries that need a run and have none in flight. */
  readonly #dirty: RefreshQueue;
  readonly #batches = new Set<RefreshBatch>();
  /** Queries with more than one version. Pruned when a batch ends. */
  readonly #multiVersion = new Set<SharedQuery>();
  /** Queries whose newest result is newer than the commits known here: the read barrier's time limit released it. */
  readonly #ahead = new Set<SharedQuery>();
  /** A quick batch has not pinned its snapshot. Later calls of `startBatches` start nothing until then. */
  #awaitingSnapshot = false;
  #runCount = 0;
  #batchCount = 0;
  #waiterCount = 0;
  #ts: number;

  constructor(options: SharedQueriesOptions) {
    this.#options = options;
    this.#ts = options.host.ts;
    this.#recentCommits = new CommitMemory(this.#ts);
    this.#dirty = new RefreshQueue({
      host: options.host,
      batches: this.#batches,
      stuck: options.stuck,
      startBatch: (queries, batchOptions) => this.#startBatch(queries, batchOptions),
    });
    this.#table = new QueryTable({
      cachedCharsMax: options.cachedCharsMax,
      onDrop: (query) => this.#onDropped(query),
      // Results of admin functions are not shared, not even before their scope is known.
      firstScope: (udfPath) => options.host.info(udfPath)?.visibility === "admin" ? "session" : "nothing",
    });
  }

  get ts(): number {
    return this.#ts;
  }

  get subscriptionCount(): number {
    let count = 0;
    for (const { subscribers } of this.#table.values()) count += subscribers.size;
    return count;
  }

  get load(): QueryLoad {
    return {
      subscriptions: this.subscriptionCount,
      sharedQueries: this.#table.size,
      refreshBatches: this.#batchCount,
      refreshBatchesInFlight: this.#batches.size,
      queriesWaiting: this.#dirty.size,
      callsWaiting: this.#waiterCount,
    };
  }

  /** Whether queries run or need to. */
  get busy(): boolean {
    return this.#batches.size > 0 || this.#dirty.size > 0;
  }

  /** Throws if the state is inconsistent. For tests. */
  validate(): void {
    let waiters = 0;
    for (const query of this.#table.values()) {
      waiters += query.waiters.length;
      query.validate();
      const wantsRun = query.run === null && query.inUse && (!query.current || query.waiters.length > 0);
      if (wantsRun !== this.#dirty.has(query)) throw new Error(`Wrong refresh state: ${query.key}`);
      if (query.versions.length > 1 && !this.#multiVersion.has(query)) {
        throw new Error(`Not marked as having several versions: ${query.key}`);
      }
      if (!query.inUse && query.run === null && query.cacheChars === 0) {
        throw new Error(`Unused but not cached: ${query.key}`);
      }
    }
    if (this.#batches.size === 0 && this.#recentCommits.size > 0) {
      throw new Error("Commits are recorded although nothing runs");
    }
    if (waiters !== this.#waiterCount) {
      throw new Error(`${waiters} calls wait, the counter says ${this.#waiterCount}`);
    }
  }

  /** Last ts at which a version is known to be valid. */
  upper(version: Version): number {
    return version.through === Infinity ? Math.max(version.from, this.#ts) : version.through;
  }

  subscribe(subscriber: Subscriber, spec: QuerySpec): void {
    const query = this.#table.findOrCreate(spec, subscriber.identity);
    this.#table.use(query);
    subscriber.shared = query;
    query.subscribers.add(subscriber);
    if (query.current) this.#options.onCacheHit?.(spec.udfPath);
    this.#updateState(query);
  }

  /** Moves a subscription to the query whose results its new identity may see. */
  identityChanged(subscriber: Subscriber): void {
    const query = subscriber.shared;
    if (query === null) return;
    const { query: target } = this.#table.findOrCreateInScope(query.spec, {
      scope: query.scope,
      identity: subscriber.identity,
    });
    if (target === query) return;
    query.subscribers.delete(subscriber);
    subscriber.shared = target;
    target.subscribers.add(subscriber);
    this.#updateState(query);
    this.#updateState(target);
  }

  unsubscribe(subscriber: Subscriber): void {
    const query = subscriber.shared;
    if (query === null) return;
    subscriber.shared = null;
    query.subscribers.delete(subscriber);
    this.#updateState(query);
  }

  /**
   * Returns a result valid at the newest commit known here, or at a later one; from cache if valid. Never rejects. Fails at
   * once if `queuedQueriesMax` calls wait. A nondeterministic result answers only calls that arrived before its run.
   */
  query(spec: QuerySpec, { identity, caller, request, trace }: Requester): Promise<Outcome> {
    const query = this.#table.findOrCreate(spec, identity);
    const newest = query.newest;
    if (newest !== undefined && query.current && !query.nondeterministic) {
      this.#table.touch(query);
      this.#options.onCacheHit?.(spec.udfPath);
      return Promise.resolve(newest.outcome);
    }
    this.#table.use(query);
    if (this.#waiterCount >= sharedQueryLimits.queuedQueriesMax) {
      this.#updateState(query);
      return Promise.resolve(failed("internal", "The server is overloaded: too many queries are waiting"));
    }
    return new Promise((resolve) => {
      this.#waiterCount++;
      const requester = { identity, request, ...(caller && { caller }), ...(trace && { trace }) };
      query.waiters.push({ ...requester, ts: this.#ts, arrival: this.#runCount, resolve });
      this.#updateState(query);
    });
  }

  /** Processes commits, which must arrive in ts order: ends the versions they invalidate. */
  commits(entries: readonly CommitEntry[]): void {
    const touched = new Set<SharedQuery>();
    for (const entry of entries) {
      if (this.#batches.size > 0) this.#recentCommits.add(entry);
      touched.clear();
      this.#index.stab(entry, (query) => touched.add(query));
      for (const query of touched) {
        const wasCurrent = query.current;
        query.close(entry.ts);
        if (wasCurrent && !query.current) this.#updateState(query);
      }
      this.#ts = entry.ts;
    }
    for (const query of this.#ahead) {
      if ((query.newest?.from ?? 0) > this.#ts) continue;
      this.#ahead.delete(query);
      query.notifyViews();
    }
  }

  /** Returns `true` and records the ts if the group certainly affects no query. Returns `false` also while batches run. */
  skipIfUnaffected({ ts, keySpaces }: Pick<FollowedGroup, "ts" | "keySpaces">): boolean {
    if (this.#batches.size > 0 || this.#ahead.size > 0 || this.#index.mayTouch(keySpaces)) return false;
    this.#ts = ts;
    return true;
  }

  /** Invalidates all results, after new code or commits of unknown content. */
  reload(): void {
    this.#ts = this.#options.host.ts;
    this.#recentCommits.forget(this.#ts);
    this.#table.forgetScopes();
    for (const query of [...this.#table.values()]) {
      if (query.run !== null) query.run.obsolete = true;
      query.versions.length = 0;
      this.#ahead.delete(query);
      this.#multiVersion.delete(query);
      this.#updateState(query);
    }
  }

  /** Starts refresh batches: at most one quick one in each call, and slow ones while readers accept them. */
  startBatches(): void {
    if (!this.#awaitingSnapshot) this.#dirty.startBatches();
  }

  #startBatch(queries: readonly SharedQuery[], options: QueryBatchOptions): void {
    if (queries.length === 0) return;
    if (this.#batches.size === 0) this.#recentCommits.forget(this.#ts);
    const batch: RefreshBatch = { snapshot: null, startedAt: this.#ts };
    this.#batches.add(batch);
    this.#batchCount++;
    const started = queries.map((query) => ({ query, run: this.#beginRun(query, batch) }));
    // A slow batch may wait for its snapshot. Other batches do not wait for that.
    const quick = options.slow !== true;
    if (quick) this.#awaitingSnapshot = true;
    const { pinned, done } = this.#options.host.startQueryBatch(
      started.map(({ query: { spec, subscribers, newest }, run: { identity, caller, request, trace } }) => ({
        udfPath: spec.udfPath,
        args: spec.args,
        origin: spec.origin,
        identity,
        ...(caller && { caller }),
        ...(request !== undefined && { request }),
        ...(trace && { trace }),
        ...(subscribers.size > 0 && { base: newest?.outcome ?? null }),
      })),
      (i, answer) => {
        const asked = started[i];
        if (asked !== undefined) this.#answered(asked.query, { run: asked.run, answer });
      },
      options,
    );
    pinned.then((ts) => {
      batch.snapshot = ts;
      if (quick) this.#awaitingSnapshot = false;
      this.#options.onWork();
    });
    done.then(() => {
      this.#batches.delete(batch);
      // Nothing is checked against these records any more, and they may be large.
      if (this.#batches.size === 0) this.#recentCommits.forget(this.#ts);
      for (const query of this.#multiVersion) this.#prune(query);
      this.#options.onWork();
    });
  }

  /** Runs use the identity of a current subscriber or caller, so that a personal result is of use. */
  #beginRun(query: SharedQuery, batch: RefreshBatch): Run {
    const { identity, caller } = this.#dirty.runIdentity(query);
    const { request, trace } = query.waiters[0] ?? {};
    const run: Run = {
      identity,
      ...(caller && { caller }),
      request,
      ...(trace && { trace }),
      number: ++this.#runCount,
      batch,
      touched: false,
      obsolete: false,
    };
    query.run = run;
    this.#dirty.delete(query);
    return run;
  }

  #answered(query: SharedQuery, { run, answer }: { readonly run: Run; readonly answer: QueryAnswer }): void {
    query.run = null;
    if (run.obsolete) {
      this.#updateState(query);
      this.#options.onWork();
      return;
    }
    const { udfPath } = query.spec;
    // A stopped run reveals nothing about its scope. Its error goes to everyone sharing the query.
    const scope = readsUnknown(answer.readSet) ? query.scope : answer.scope;
    if (this.#options.host.info(udfPath) !== undefined) this.#table.learnScope(udfPath, scope);
    const target = scope === query.scope
      ? query
      : this.#table.findOrCreateInScope(query.spec, { scope, identity: run.identity }).query;
    if (target !== query) this.#copyVersions(target, query);
    target.durationMs = answer.durationMs;
    target.nondeterministic = answer.nondeterministic;
    const touch = this.#recentCommits.firstTouch(answer.readSet, answer.ts);
    const version = {
      from: answer.ts,
      through: touch === null ? Infinity : touch - 1,
      outcome: answer.outcome,
    };
    if (target === query && query.subscribers.size === 0) {
      this.#answerWaiters(query, { run, version });
      const isUnused = !query.inUse && !query.current;
      if (isUnused && (touch !== null || !this.#table.isWorthCaching(query, answer))) {
        this.#table.drop(query);
        this.#options.onWork();
        return;
      }
    }
    this.#record(target, version, answer.readSet);
    if (target !== query) this.#reassignAll(query, scope);
    if (answer.nondeterministic && target.subscribers.size > 0) this.#options.onVolatile?.(target);
    this.#answerWaiters(target, { run, version });
    this.#updateState(target);
    target.notifyViews();
    this.#options.onWork();
  }

  #record(target: SharedQuery, version: Version, readSet: ReadSet): void {
    // A valid result stays: this run was for a one-shot call or a caller of a narrower scope.
    if (target.current) return;
    const previous = target.newest?.outcome;
    const isSame = previous !== undefined && sameOutcome(previous, version.outcome, this.#options);
    if (target.insert(isSame ? { ...version, outcome: previous } : { ...version })) {
      if (target.readSet === null || !sameReadSet(target.readSet, readSet)) {
        if (target.readSet !== null) this.#index.remove(target, target.readSet);
        this.#index.add(target, readSet);
        target.readSet = readSet;
      }
    }
    if (version.from > this.#ts) this.#ahead.add(target);
    this.#prune(target);
  }

  /** Copies ended versions into a query of a narrower scope: they were valid for each of its callers. */
  #copyVersions(target: SharedQuery, query: SharedQuery): void {
    if (target.versions.length > 0 || scopes.indexOf(target.scope) < scopes.indexOf(query.scope)) return;
    for (const version of query.versions) {
      if (version.through !== Infinity) target.versions.push({ ...version });
    }
    if (target.versions.length > 1) this.#multiVersion.add(target);
  }

  #reassignAll(query: SharedQuery, scope: SharedQuery["scope"]): void {
    const targets = new Set<SharedQuery>();
    const sharedFor = (identity: Identity): SharedQuery => {
      const { query: target } = this.#table.findOrCreateInScope(query.spec, { scope, identity });
      this.#copyVersions(target, query);
      targets.add(target);
      return target;
    };
    const waiters = query.waiters;
    query.waiters = [];
    for (const waiter of waiters) sharedFor(waiter.identity).waiters.push(waiter);
    // A result that is still valid stays with its subscribers.
    if (!query.current) {
      for (const subscriber of query.subscribers) {
        const target = sharedFor(subscriber.identity);
        subscriber.shared = target;
        target.subscribers.add(subscriber);
        subscriber.view.needsAdvance();
      }
      query.subscribers.clear();
    }
    this.#updateState(query);
    for (const target of targets) this.#updateState(target);
  }

  #answerWaiters(
    query: SharedQuery,
    { run, version }: { readonly run: Run; readonly version: Version },
  ): void {
    if (query.waiters.length === 0) return;
    const left: Waiter[] = [];
    for (const waiter of query.waiters) {
      if (version.through < waiter.ts || (query.nondeterministic && run.number <= waiter.arrival)) {
        left.push(waiter);
      } else {
        this.#waiterCount--;
        waiter.resolve(version.outcome);
      }
    }
    query.waiters = left;
  }

  /** Updates the state of a query after any change: due to run, cached or dropped. */
  #updateState(query: SharedQuery): void {
    if (query.run !== null) return;
    if (!query.inUse) {
      this.#dirty.delete(query);
      this.#table.release(query);
    } else if (!query.current || query.waiters.length > 0) {
      if (this.#dirty.has(query)) return;
      this.#dirty.add(query);
      this.#options.onWork();
    } else {
      this.#dirty.delete(query);
    }
  }

  #prune(query: SharedQuery): void {
    query.prune(this.#batches);
    if (query.versions.length > 1) this.#multiVersion.add(query);
    else this.#multiVersion.delete(query);
  }

  /** Cleans up after a query that left the table. */
  #onDropped(query: SharedQuery): void {
    if (query.readSet !== null) this.#index.remove(query, query.readSet);
    query.readSet = null;
    this.#dirty.delete(query);
    this.#multiVersion.delete(query);
    this.#ahead.delete(query);
  }
}
