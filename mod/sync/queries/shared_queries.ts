/**
 * Runs every distinct query once for all who want it (SH): who shares what, which results
 * still hold after a commit, and what has to run again.
 */
import type { CommitEntry } from "../../engine/types.ts";
import type {
  FollowedGroup,
  FunctionCall,
  FunctionHost,
  QueryAnswer,
  WaveOptions,
} from "../../functions/host_port.ts";
import type { Identity } from "../../functions/identity.ts";
import { failed, type Outcome } from "../../functions/outcome.ts";
import { sharedQueryLimits } from "../limits.ts";
import { CommitMemory } from "./commit_memory.ts";
import { Invalidation, readsUnknown, sameReadSet } from "./invalidation.ts";
import { QueryTable } from "./query_table.ts";
import { sameOutcome } from "./same_outcome.ts";
import { scopes } from "./scope.ts";
import type {
  QuerySpec,
  Run,
  SharedQuery,
  Subscriber,
  Version,
  View,
  Waiter,
  WaveRecord,
} from "./shared_query.ts";
import { planWave } from "./wave_plan.ts";

/** Subscribers and callers of a query that are looked at to find one in whose name it may run. */
const NAMES_TRIED_MAX = 64;
/** Sockets of those who are refused may stand in front of the others. */
const CANDIDATES_LOOKED_AT_MAX = 16_384;
/** Callers whose last slow run is remembered. */
const SLOW_CALLERS_MAX = 10_000;

export interface SharedQueriesOptions {
  readonly host: FunctionHost;
  readonly dev: boolean;
  /** Called when a wave may be worth starting: the owner calls `startWaves` soon after, once for many calls. */
  readonly onWork: () => void;
  /** Views that have been unable to move for long. */
  readonly stuck: () => Iterable<View>;
  /** Told of each call or subscription that was answered without a run; nobody has to be. */
  readonly onCacheHit?: (udfPath: string) => void;
}

/** Who asks for a result. */
export type Asker = Pick<FunctionCall, "identity" | "caller" | "request">;

/** What there is to do at the moment, and how much was done since the start. */
export interface QueryWork {
  /** Waves begun since the start. */
  readonly waves: number;
  readonly wavesUnderWay: number;
  /** Queries that want a run and have none. */
  readonly queriesWaiting: number;
  /** Calls that wait for a result. */
  readonly callsWaiting: number;
}

export class SharedQueries {
  readonly #options: SharedQueriesOptions;
  readonly #table: QueryTable;
  readonly #index = new Invalidation<SharedQuery>();
  readonly #memory: CommitMemory;
  /** Queries that want a run and have none under way. */
  readonly #dirty = new Set<SharedQuery>();
  readonly #waves = new Set<WaveRecord>();
  /** Queries with more than one version: looked at again when a wave ends. */
  readonly #layered = new Set<SharedQuery>();
  /** Queries whose newest result is newer than the newest commit main knows. */
  readonly #ahead = new Set<SharedQuery>();
  #pinning = false;
  /** When callers last had a slow run, as a count, in that order. */
  readonly #served = new Map<string, number>();
  #slowRuns = 0;
  #runCount = 0;
  #waveCount = 0;
  #waiterCount = 0;
  #ts: number;

  constructor(options: SharedQueriesOptions) {
    this.#options = options;
    this.#ts = options.host.ts;
    this.#memory = new CommitMemory(this.#ts);
    this.#table = new QueryTable({
      onDrop: (query) => this.#forget(query),
      // Nobody shares what administrators ask for, not even for the time until it has run once.
      firstScope: (udfPath) => options.host.info(udfPath)?.visibility === "admin" ? "session" : "nothing",
    });
  }

  /** Newest commit known here. */
  get ts(): number {
    return this.#ts;
  }

  /** Shared queries known, wanted or kept. */
  get size(): number {
    return this.#table.size;
  }

  /** Subscribers of all queries. */
  get subscriptionCount(): number {
    let count = 0;
    for (const { subscribers } of this.#table.values()) count += subscribers.size;
    return count;
  }

  get work(): QueryWork {
    return {
      waves: this.#waveCount,
      wavesUnderWay: this.#waves.size,
      queriesWaiting: this.#dirty.size,
      callsWaiting: this.#waiterCount,
    };
  }

  /** Whether queries run or want to. */
  get working(): boolean {
    return this.#waves.size > 0 || this.#dirty.size > 0;
  }

  /** Throws when the state contradicts itself. For tests. */
  validate(): void {
    let waiters = 0;
    for (const query of this.#table.values()) {
      waiters += query.waiters.length;
      query.validate();
      const wantsRun = query.run === null && query.wanted && (!query.current || query.waiters.length > 0);
      if (wantsRun !== this.#dirty.has(query)) throw new Error(`Wrongly among those to run: ${query.key}`);
      if (query.versions.length > 1 && !this.#layered.has(query)) {
        throw new Error(`Not layered: ${query.key}`);
      }
      if (!query.wanted && query.run === null && query.cacheChars === 0) {
        throw new Error(`Left over: ${query.key}`);
      }
    }
    if (this.#waves.size === 0 && this.#memory.size > 0) {
      throw new Error("Commits are remembered although nothing runs");
    }
    if (waiters !== this.#waiterCount) {
      throw new Error(`${waiters} calls wait, ${this.#waiterCount} are counted`);
    }
  }

  /** Last ts at which a version holds, as far as is known. */
  upper(version: Version): number {
    return version.through === Infinity ? Math.max(version.from, this.#ts) : version.through;
  }

  subscribe(subscriber: Subscriber, spec: QuerySpec): void {
    const query = this.#table.homeOf(spec, subscriber.identity);
    subscriber.shared = query;
    query.subscribers.add(subscriber);
    if (query.current) this.#options.onCacheHit?.(spec.udfPath);
    this.#settle(query);
  }

  /** The subscriber's identity has changed: it goes on with the results the new one may see. */
  rehome(subscriber: Subscriber): void {
    const query = subscriber.shared;
    if (query === null) return;
    const { query: home } = this.#table.at(query.spec, { scope: query.scope, identity: subscriber.identity });
    if (home === query) return;
    query.subscribers.delete(subscriber);
    subscriber.shared = home;
    home.subscribers.add(subscriber);
    this.#settle(query);
    this.#settle(home);
  }

  unsubscribe(subscriber: Subscriber): void {
    const query = subscriber.shared;
    if (query === null) return;
    subscriber.shared = null;
    query.subscribers.delete(subscriber);
    this.#settle(query);
  }

  /** The result of a query at the newest commit or later, from what is known when that holds. Never rejects. */
  query(spec: QuerySpec, { identity, caller, request }: Asker): Promise<Outcome> {
    const query = this.#table.homeOf(spec, identity);
    const newest = query.newest;
    if (newest !== undefined && query.current && !query.nondeterministic) {
      this.#settle(query);
      this.#options.onCacheHit?.(spec.udfPath);
      return Promise.resolve(newest.outcome);
    }
    if (this.#waiterCount >= sharedQueryLimits.queuedQueriesMax) {
      this.#settle(query);
      return Promise.resolve(failed("internal", "The server is overloaded: too many queries are waiting"));
    }
    return new Promise((resolve) => {
      this.#waiterCount++;
      const whose = { identity, request, ...(caller && { caller }) };
      query.waiters.push({ ...whose, ts: this.#ts, arrival: this.#runCount, resolve });
      this.#settle(query);
    });
  }

  /** Takes note of commits: closes the versions they touch. */
  commits(entries: readonly CommitEntry[]): void {
    const touched = new Set<SharedQuery>();
    for (const entry of entries) {
      if (this.#waves.size > 0) this.#memory.add(entry);
      touched.clear();
      this.#index.stab(entry, (query) => touched.add(query));
      for (const query of touched) {
        const wasCurrent = query.current;
        query.close(entry.ts);
        if (wasCurrent && !query.current) this.#settle(query);
      }
      this.#ts = entry.ts;
    }
    for (const query of this.#ahead) {
      if ((query.newest?.from ?? 0) > this.#ts) continue;
      this.#ahead.delete(query);
      touchSubscribers(query);
    }
  }

  /** Whether commits are nothing to any query that is known or runs: their ts is noted then. */
  passes({ ts, spaces }: Pick<FollowedGroup, "ts" | "spaces">): boolean {
    if (this.#waves.size > 0 || this.#ahead.size > 0 || this.#index.mayTouch(spaces)) return false;
    this.#ts = ts;
    return true;
  }

  /** New code, or commits that nobody heard of: nothing known holds any longer. */
  reload(): void {
    this.#ts = this.#options.host.ts;
    this.#memory.forget(this.#ts);
    this.#table.forgetScopes();
    for (const query of [...this.#table.values()]) {
      if (query.run !== null) query.run.obsolete = true;
      query.versions.length = 0;
      this.#ahead.delete(query);
      this.#layered.delete(query);
      this.#settle(query);
    }
  }

  /** Starts a wave when there is work for one and a reader to take it. */
  startWaves(): void {
    const { host } = this.#options;
    if (this.#pinning || this.#dirty.size === 0) return;
    const { queries, together } = this.#plan();
    if (host.slowKnown !== true) {
      if (host.readerFree) this.#startWave(queries, {});
      return;
    }
    const slow = new Set(queries.filter((query) => this.#isSlow(query)));
    // What has to go together is slow when a part of it is.
    const heavy = [...together].some((query) => slow.has(query)) ? together : new Set<SharedQuery>();
    const quick = queries.filter((query) => !slow.has(query) && !heavy.has(query));
    if (quick.length > 0 && host.readerFree) this.#startWave(quick, {});
    if (slow.size > 0) this.#startSlowWaves();
  }

  #plan(): ReturnType<typeof planWave> {
    return planWave({ dirty: this.#dirty, waves: this.#waves, stuck: this.#options.stuck() });
  }

  /** Slow queries go one by one, in turns of their callers, as far as there are readers for them. */
  #startSlowWaves(): void {
    while (this.#options.host.slowReaderFree?.() === true) {
      const { queries, together } = this.#plan();
      const next = queries.filter((query) => this.#isSlow(query))
        .map((query) => ({ query, turn: this.#inWhoseName(query).caller?.turn ?? "" }))
        .reduce<{ query: SharedQuery; turn: string } | null>(
          (first, each) =>
            first === null || this.#servedOf(each.turn) < this.#servedOf(first.turn) ? each : first,
          null,
        );
      if (next === null) return;
      this.#served.delete(next.turn);
      this.#served.set(next.turn, ++this.#slowRuns);
      const [oldest] = this.#served.keys();
      if (this.#served.size > SLOW_CALLERS_MAX && oldest !== undefined) this.#served.delete(oldest);
      const group = together.has(next.query) ? queries.filter((query) => together.has(query)) : [next.query];
      this.#startWave(group, { slow: true });
    }
  }

  #servedOf(turn: string): number {
    return this.#served.get(turn) ?? 0;
  }

  #isSlow(query: SharedQuery): boolean {
    const { caller } = this.#inWhoseName(query);
    const { udfPath } = query.spec;
    return this.#options.host.isSlow?.({ udfPath, ...(caller && { caller }) }) ?? false;
  }

  #startWave(queries: readonly SharedQuery[], options: WaveOptions): void {
    if (queries.length === 0) return;
    if (this.#waves.size === 0) this.#memory.forget(this.#ts);
    const wave: WaveRecord = { snapshot: null, startedAt: this.#ts };
    this.#waves.add(wave);
    this.#waveCount++;
    const started = queries.map((query) => ({ query, run: this.#begin(query, wave) }));
    // A slow one may have to wait for its snapshot; others do not wait for that.
    const quick = options.slow !== true;
    if (quick) this.#pinning = true;
    const { pinned, done } = this.#options.host.startWave(
      started.map(({ query: { spec }, run: { identity, caller, request } }) => ({
        udfPath: spec.udfPath,
        args: spec.args,
        origin: spec.origin,
        identity,
        ...(caller && { caller }),
        ...(request !== undefined && { request }),
      })),
      (i, answer) => {
        const asked = started[i];
        if (asked !== undefined) this.#answered(asked.query, { run: asked.run, answer });
      },
      options,
    );
    pinned.then((ts) => {
      wave.snapshot = ts;
      if (quick) this.#pinning = false;
      this.#options.onWork();
    });
    done.then(() => {
      this.#waves.delete(wave);
      // Nobody will ask any more; what is kept of applied rows may be large.
      if (this.#waves.size === 0) this.#memory.forget(this.#ts);
      for (const query of this.#layered) this.#prune(query);
      this.#options.onWork();
    });
  }

  /** Runs are made in the name of somebody present, so that a result found to be personal is of use to somebody. */
  #begin(query: SharedQuery, wave: WaveRecord): Run {
    const { identity, caller } = this.#inWhoseName(query);
    const run: Run = {
      identity,
      ...(caller && { caller }),
      request: query.waiters[0]?.request,
      number: ++this.#runCount,
      wave,
      touched: false,
      obsolete: false,
    };
    query.run = run;
    this.#dirty.delete(query);
    return run;
  }

  /**
   * Somebody present who is not refused the function, if there is one among the first. Who is refused is passed over with all
   * that go under the same name, however many there are.
   */
  #inWhoseName(query: SharedQuery): Pick<Run, "identity" | "caller"> {
    let first: Pick<Run, "identity" | "caller"> | null = null;
    const refused = new Set<string>();
    let left = CANDIDATES_LOOKED_AT_MAX;
    for (const candidate of candidatesOf(query)) {
      first ??= candidate;
      if (left-- === 0 || refused.size === NAMES_TRIED_MAX) break;
      const { caller } = candidate;
      if (caller === undefined) return candidate;
      if (refused.has(caller.blame)) continue;
      if (!this.#options.host.refuses?.(query.spec.udfPath, caller)) return candidate;
      refused.add(caller.blame);
    }
    return first ?? { identity: query.identity };
  }

  #answered(query: SharedQuery, { run, answer }: { readonly run: Run; readonly answer: QueryAnswer }): void {
    query.run = null;
    if (run.obsolete) {
      this.#settle(query);
      this.#options.onWork();
      return;
    }
    const { udfPath } = query.spec;
    // A run that was stopped says nothing about whom its result is for: its error goes to all who shared the query.
    const scope = readsUnknown(answer.readSet) ? query.scope : answer.scope;
    if (this.#options.host.info(udfPath) !== undefined) this.#table.learnScope(udfPath, scope);
    const home = scope === query.scope
      ? query
      : this.#table.at(query.spec, { scope, identity: run.identity }).query;
    if (home !== query) this.#inherit(home, query);
    const version = this.#record(home, answer);
    if (home !== query) this.#moveAll(query, scope);
    this.#answerWaiters(home, { run, version });
    this.#settle(home);
    touchSubscribers(home);
    this.#options.onWork();
  }

  /** Adds the answer to the versions of its home; returns the version it makes. */
  #record(home: SharedQuery, answer: QueryAnswer): Version {
    home.durationMs = answer.durationMs;
    home.nondeterministic = answer.nondeterministic;
    const previous = home.newest?.outcome;
    const outcome = previous !== undefined && sameOutcome(previous, answer.outcome, this.#options)
      ? previous
      : answer.outcome;
    const touch = this.#memory.firstTouch(answer.readSet, answer.ts);
    const version: Version = { from: answer.ts, through: touch === null ? Infinity : touch - 1, outcome };
    // A result that holds stays: this run was made for a one-shot call, or by a caller of a narrower scope.
    if (home.current) return version;
    if (home.insert({ ...version })) {
      if (home.readSet === null || !sameReadSet(home.readSet, answer.readSet)) {
        if (home.readSet !== null) this.#index.remove(home, home.readSet);
        this.#index.add(home, answer.readSet);
        home.readSet = answer.readSet;
      }
    }
    if (answer.ts > this.#ts) this.#ahead.add(home);
    this.#prune(home);
    return version;
  }

  /** What held for all callers of a wider audience held for each of them: a narrower home starts with it. */
  #inherit(home: SharedQuery, query: SharedQuery): void {
    if (home.versions.length > 0 || scopes.indexOf(home.scope) < scopes.indexOf(query.scope)) return;
    for (const version of query.versions) {
      if (version.through !== Infinity) home.versions.push({ ...version });
    }
    if (home.versions.length > 1) this.#layered.add(home);
  }

  /** The scope of a query has changed: everybody moves to the shared query whose results they may see. */
  #moveAll(query: SharedQuery, scope: SharedQuery["scope"]): void {
    const homes = new Set<SharedQuery>();
    const homeFor = (identity: Identity): SharedQuery => {
      const { query: home } = this.#table.at(query.spec, { scope, identity });
      this.#inherit(home, query);
      homes.add(home);
      return home;
    };
    const waiters = query.waiters;
    query.waiters = [];
    for (const waiter of waiters) homeFor(waiter.identity).waiters.push(waiter);
    // A result that still holds is kept by those who show it.
    if (!query.current) {
      for (const subscriber of query.subscribers) {
        const home = homeFor(subscriber.identity);
        subscriber.shared = home;
        home.subscribers.add(subscriber);
        subscriber.view.touch();
      }
      query.subscribers.clear();
    }
    this.#settle(query);
    for (const home of homes) this.#settle(home);
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

  /** Puts a query where it belongs after any change: among those to run, kept, or dropped. */
  #settle(query: SharedQuery): void {
    if (query.run !== null) return;
    if (!query.wanted) {
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
    query.prune(this.#waves);
    if (query.versions.length > 1) this.#layered.add(query);
    else this.#layered.delete(query);
  }

  /** Lets go of a query that has left the table. */
  #forget(query: SharedQuery): void {
    if (query.readSet !== null) this.#index.remove(query, query.readSet);
    query.readSet = null;
    this.#dirty.delete(query);
    this.#layered.delete(query);
    this.#ahead.delete(query);
  }
}

function* candidatesOf({ subscribers, waiters }: SharedQuery): Generator<Pick<Run, "identity" | "caller">> {
  for (const { identity, view: { caller } } of subscribers) yield { identity, caller };
  for (const { identity, caller } of waiters) yield { identity, ...(caller && { caller }) };
}

function touchSubscribers(query: SharedQuery): void {
  for (const { view } of query.subscribers) view.touch();
}
