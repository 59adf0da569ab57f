/** The isolates as the rest of the server sees them: one writer, readers, action runners. */
import { changesCatalog, type JournalRow, versionNamed } from "../../engine/journal/row.ts";
import type { CommitEntry } from "../../engine/types.ts";
import type { Log } from "../../kit/log.ts";
import { Wakefulness } from "../../kit/wakefulness.ts";
import { isolateLimits } from "../limits.ts";
import {
  type Caller,
  type FunctionCall,
  type FunctionHost,
  type FunctionInfo,
  type MutationAnswer,
  type MutationCall,
  type QueryAnswer,
  unknownReads,
  type Wave,
  type WaveOptions,
} from "../host_port.ts";
import { type ActionDoor, type MainAction, MainActions } from "../main_actions.ts";
import { failed, type Outcome, unknownFunctionText } from "../outcome.ts";
import type {
  AppCheck,
  CheckBounds,
  JournalConfirmed,
  JournalRestart,
  Reached,
  WireCron,
} from "../wire/messages.ts";
import { type Clock, steadyClock } from "../../kit/clock.ts";
import { isolateCommand } from "./process/command.ts";
import type { IsolateMemory } from "./process/isolate_memory.ts";
import { FailureLog } from "./failure_log.ts";
import type { ActionAnswer, Companions, Heard, LeaderPort, ServedApp } from "./leader_port.ts";
import { IsolateCensus } from "./process/isolate_census.ts";
import { Refusals } from "./refusals.ts";
import type { IsolateStarter, Ready } from "./process/isolate.ts";
import { ranTooLong, refusedFor, type Timeouts, usualTimeouts } from "./outcomes.ts";
import { ProcessStarter } from "./process/isolate_process.ts";
import { Arrivals } from "./readers/arrivals.ts";
import { ReaderPool } from "./readers/reader_pool.ts";
import type { RouteAnswer, RouteRequest } from "./runners/route_exchange.ts";
import { RouteRequests } from "./runners/route_requests.ts";
import { RouteTable } from "./runners/route_table.ts";
import { type Version, type VersionSource, VersionStore } from "../versions/version_store.ts";
import { nextRequest, numberError, type RunEnd, type RunObserver } from "./run_observer.ts";
import { RunnerPool } from "./runners/runner_pool.ts";
import { FollowingWriter, RowsRefusedError } from "./writer/following_writer.ts";
import { HearingWriter } from "./writer/hearing_writer.ts";
import type { MutationWriter, ReplaceResult } from "./writer/mutation_writer.ts";
import type { RowKeeper } from "./writer/row_keeper.ts";
import { Writer } from "./writer/writer.ts";

export interface IsolateHostOptions {
  /** Folder of `data.db`; it must exist. */
  readonly dataDir: string;
  /** The app's functions as their author has them, or the hash of a version in the data folder. */
  readonly code: VersionSource | { readonly version: string };
  /** Whether this version of the code is of no use to anybody later: it is removed at the end unless it was there. */
  readonly passing?: boolean;
  /** What actions see as `ctx.env`. */
  readonly env: Readonly<Record<string, string>>;
  /** Hosts that actions may reach; `null` or absent for any. */
  readonly actionNet?: readonly string[] | null;
  /** Module that runs an isolate; one without functions of the service when absent. */
  readonly entry?: URL;
  /** What functions of the service have to know of the server, by feature; JSON. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Numbers that tables get which the database does not have yet, so that ids from elsewhere are theirs. */
  readonly tableNumbers?: Readonly<Record<string, number>>;
  /** Has the writer keep a journal, of which so many bytes may wait. */
  readonly journal?: { readonly pendingBytesMax: number };
  /** The commits are made elsewhere, and come by {@linkcode IsolateHost.applyRows}; mutations are refused without a leader. */
  readonly follows?: boolean;
  /** The database is the leader's, which is asked for all that writes, and tells of commits by {@linkcode IsolateHost.hear}. */
  readonly heard?: Heard;
  /** Where mutations run when they do not run here. */
  readonly leader?: LeaderPort;
  /** The history is kept elsewhere: what the writer commits has to be there before. */
  readonly rows?: RowKeeper;
  /** For a server that serves what others name: see {@linkcode HostCode.bring}. */
  readonly bring?: BringVersion;
  /** Told of every run here; nobody has to be. */
  readonly observer?: RunObserver;
  /** What isolates may use of the machine's memory. */
  readonly memory?: IsolateMemory;
  /** How long queries and mutations may run; as the contract says when absent. */
  readonly timeouts?: Timeouts;
  /** Processors that readers can keep busy; those of the machine when absent. */
  readonly cores?: number;
  /**
   * For a data folder that another server uses: called when everything is ready but what needs the database, resolves when
   * the other one has let go of it. When it rejects, nothing was started.
   */
  readonly letGo?: () => Promise<void>;
  readonly log: Log;
}

/** Has a version in the store that somebody else has named. Rejects with a `VersionError` when this server cannot serve it. */
export type BringVersion = (hash: string | null, versions: VersionStore) => Promise<Version>;

/** Where the calls of a server go that has lent its database for good. They never reject. */
export interface PassedCalls {
  mutate(call: MutationCall): Promise<MutationAnswer>;
  query(call: FunctionCall): Promise<Outcome>;
}

/** The database is another server's: calls wait until one of these is called. */
export interface Lent {
  /** It is ours again. */
  giveBack(): void;
  /** It stays the other's: what waits and what is still to come goes there. */
  passOn(to: PassedCalls): void;
}

/** What tests hold in their hands instead of processes and the machine's clock. */
export interface HostParts {
  readonly starter: IsolateStarter & AsyncDisposable;
  readonly clock: Clock;
  readonly log: Log;
  readonly batchPrefix: string;
  readonly cores: number;
  /** Readers running at once; `isolateLimits.readersMax` when absent. */
  readonly readersMax?: number;
  /** Whether a second reader stands by while queries are asked. */
  readonly spareReader?: boolean;
  /** Spends short waits for the writer awake; without it main sleeps. */
  readonly awake?: Wakefulness;
  /** Kept by the starter. */
  readonly census?: IsolateCensus;
  readonly observer?: RunObserver;
  readonly timeouts?: Timeouts;
  readonly follows?: boolean;
  readonly heard?: Heard;
  readonly leader?: LeaderPort;
  readonly rows?: Pick<RowKeeper, "waitMs">;
  /** The code that isolates load; without it there is nothing to load in its place. */
  readonly code?: HostCode;
}

/** The versions of a data folder, and the one that is loaded first. */
export interface HostCode {
  readonly versions: VersionStore;
  readonly version: Version;
  /** Where {@linkcode version} comes from, to be loaded anew; `null` when it is not to be. */
  readonly source: VersionSource | null;
  readonly passing?: boolean;
  /** Gets the versions that rows name from others; without it those are nobody's affair. `null` names none. */
  readonly bring?: BringVersion;
}

export interface LoadOptions {
  /** Never rejects. */
  readonly swapped?: () => Promise<void>;
}

/** A version that cannot be loaded; the message says why. */
export class BrokenVersionError extends Error {
  override readonly name = "BrokenVersionError";
}

export class IsolateHost implements FunctionHost, AsyncDisposable {
  /** Which isolates there are. */
  readonly isolates: IsolateCensus;
  readonly #parts: HostParts;
  readonly #writer: MutationWriter;
  /** The writer of a server that follows; `null` on others. */
  readonly #following: FollowingWriter | null;
  readonly #readers: ReaderPool;
  /** Answers of the leader that are newer than what was heard of its commits. */
  readonly #answers: Arrivals;
  readonly #runners: RunnerPool;
  readonly #failures: FailureLog;
  readonly #refusals: Refusals;
  readonly #commitListeners: ((entries: readonly CommitEntry[]) => void)[] = [];
  readonly #reloadListeners: (() => void)[] = [];
  readonly #groupListeners: (() => void)[] = [];
  /** Set from each new writer's answer to Boot. */
  #functions: ReadonlyMap<string, FunctionInfo> = new Map();
  readonly #requests: RouteRequests;
  /** The app's HTTP routes; set like `#functions`. */
  #routes = new RouteTable([]);
  /** The app's crons; set like `#functions`. */
  #crons: readonly WireCron[] = [];
  /** Advanced with each group, before the listeners are told of it. */
  #ts = 0;
  /** ts of the newest mutation that was passed on by {@linkcode retire}. */
  #passedTs = 0;
  /** The version that is loaded, and its hold; set when one was. */
  #version: Version | null = null;
  #held: Disposable | null = null;
  /** Ends with the newest load. */
  #loading: Promise<unknown> = Promise.resolve();
  /** Set by `serveQueries`. */
  #serveQuery: ((call: FunctionCall) => Promise<Outcome>) | null = null;
  /** Set by `serveActions`. */
  #mainActions = new MainActions();
  /** Set by `serveActions`. */
  #ctxActions = new MainActions();
  /** Other processes that read this database; set by `accompany`. */
  #companions: Companions | null = null;
  /** Where calls go while the database is lent: settles to `null` when it is given back. */
  #passing: Promise<PassedCalls | null> | null = null;

  private constructor(parts: HostParts) {
    const { starter, clock, log, batchPrefix, cores, awake, census, observer } = parts;
    const { queryMs, mutationMs } = parts.timeouts ?? usualTimeouts;
    this.#refusals = new Refusals({ log, clock });
    this.#parts = parts;
    this.#version = parts.code?.version ?? null;
    this.isolates = census ?? new IsolateCensus();
    this.#failures = new FailureLog({ log, clock });
    const told = {
      onGroup: (entries: readonly CommitEntry[], ts: number) => this.#onGroup(entries, ts),
      onGap: (ts: number) => this.#onGap(ts),
    };
    const { leader, heard } = parts;
    this.#following = parts.follows === true
      ? new FollowingWriter({ starter, clock, log, ...(leader && { leader }), ...told })
      : null;
    const hearing = heard === undefined || leader === undefined ? null : new HearingWriter({ leader, heard });
    this.#writer = this.#following ?? hearing ?? new Writer({
      starter,
      clock,
      log,
      batchPrefix,
      timeoutMs: mutationMs,
      storesMs: parts.rows?.waitMs ?? 0,
      ...(awake && { awake }),
      ...(observer && { observer }),
      ...told,
    });
    this.#answers = new Arrivals(clock, 0);
    const { readersMax = isolateLimits.readersMax } = parts;
    this.#readers = new ReaderPool({
      ...{ starter, clock, log, cores, readersMax },
      spare: parts.spareReader === true,
      ts: () => this.#ts,
      timeoutMs: queryMs,
      isKnown: (udfPath) => this.#functions.has(udfPath),
    });
    this.#runners = new RunnerPool({
      starter,
      clock,
      log,
      serve: (kind, call) => this.#serve(kind, call),
      onEnd: (kind, { call, outcome, ms, queuedMs }) => {
        this.#noteFailure(call, outcome);
        observer?.runEnded(kind, actionEnd(call, { outcome, ms, queuedMs }));
      },
    });
    this.#requests = new RouteRequests((call, exchange) => this.#runners.act(call, exchange));
  }

  /**
   * Starts the writer, which makes the database fit the app's schema, then a reader. Throws with the reason, which names
   * file and line or table and document, when the app cannot be loaded.
   */
  static async start(options: IsolateHostOptions): Promise<IsolateHost> {
    const dataDir = await Deno.realPath(options.dataDir);
    const {
      env,
      actionNet = null,
      entry,
      settings = {},
      tableNumbers,
      journal,
      follows = false,
      heard,
      leader,
      rows,
      observer,
      timeouts,
      memory,
      log,
      passing,
      letGo,
      bring,
    } = options;
    const versions = await VersionStore.open(dataDir);
    const source = "functionsDir" in options.code ? options.code : null;
    const version = "version" in options.code
      ? await (bring === undefined
        ? versions.get(options.code.version)
        : bring(options.code.version, versions))
      : await versions.make(options.code);
    const starter = await ProcessStarter.create({
      dataDir,
      version,
      versions,
      env,
      actionNet,
      settings,
      ...(entry && { entry }),
      ...(tableNumbers && { tableNumbers }),
      ...(journal && { journal }),
      follows,
      ...(rows && { rows }),
      command: isolateCommand,
      ...(memory && { isolateMemory: memory }),
      log,
      clock: steadyClock,
      ...((letGo || heard) && { shared: true }),
    });
    if (letGo !== undefined) {
      try {
        // A writer that keeps its rows elsewhere can be told of the database later.
        const loads = rows !== undefined;
        await Promise.all([starter.warm("writer", { loads }), starter.warm("reader", { loads })]);
        await letGo();
      } catch (error) {
        await starter[Symbol.asyncDispose]();
        throw error;
      }
    } else {
      // It is needed as soon as the writer has made the database fit, and begins beside it.
      void starter.warm("reader");
    }
    const batchPrefix = crypto.randomUUID();
    const { cores = navigator.hardwareConcurrency } = options;
    const awake = new Wakefulness(isolateLimits.awakeMs);
    return await IsolateHost.startWith({
      starter,
      clock: steadyClock,
      log,
      batchPrefix,
      cores,
      awake,
      census: starter.census,
      ...(observer && { observer }),
      ...(timeouts && { timeouts }),
      ...(memory && { readersMax: memory.readersMax }),
      spareReader: memory?.sparing !== true,
      follows,
      ...(heard && { heard }),
      ...(leader && { leader }),
      ...(rows && { rows }),
      code: { versions, version, source, ...(passing && { passing }), ...(bring && { bring }) },
    });
  }

  /** Like {@linkcode start}, with given parts. */
  static async startWith(parts: HostParts): Promise<IsolateHost> {
    const host = new IsolateHost(parts);
    try {
      host.#loaded(await host.#writer.start());
      await host.#readers.start();
      // It is the leader that says what is served.
      if (parts.code !== undefined && parts.heard !== undefined) {
        host.#held = await host.versions.hold(parts.code.version);
      } else if (parts.code !== undefined && !parts.code.passing) await host.#served(parts.code.version);
    } catch (error) {
      await host[Symbol.asyncDispose]();
      throw error;
    }
    return host;
  }

  get ts(): number {
    return this.#ts;
  }

  /** Mutations that the writer has not taken yet. */
  get mutationsWaiting(): number {
    return this.#writer.waiting;
  }

  /** The app's crons, as its code is loaded now. */
  get crons(): readonly WireCron[] {
    return this.#crons;
  }

  /** The key of the app's route for a request, or `null`. `pathname` is as it stands in the URL. */
  findRoute(method: string, pathname: string): string | null {
    return this.#routes.find(method, pathname);
  }

  /** Answers a request by a route. Resolves when the response begins. Never rejects. */
  respond(request: RouteRequest): Promise<RouteAnswer> {
    return this.#requests.respond(request);
  }

  info(udfPath: string): FunctionInfo | undefined {
    return this.#mainActions.info(udfPath) ?? this.#functions.get(udfPath);
  }

  mutate(given: MutationCall): Promise<MutationAnswer> {
    const { clock, observer } = this.#parts;
    const since = observer === undefined ? 0 : clock.now();
    let call = given;
    if (this.#isRefused(given)) {
      const outcome = refusedFor(given.udfPath);
      // One that is sent again may have an answer from before.
      if (given.replay === undefined) return Promise.resolve({ outcome, ts: this.#ts, replayed: false });
      call = { ...given, udfPath: "", args: {}, failedWith: given.failedWith ?? outcome.error };
    }
    // The leader tells of what it runs.
    if (this.#parts.leader !== undefined) return this.#heardFirst(this.#writer.mutate(call));
    const answer = this.#writer.mutate(call);
    answer.then(({ outcome, replayed, ts, run }) => {
      // A recorded answer was told when it was new.
      if (replayed) return;
      // Whoever ran it tells.
      if (this.#passing !== null) return;
      const request = call.request ?? nextRequest();
      numberError(outcome, request);
      this.#noteFailure(given, outcome);
      if (observer === undefined) return;
      const ms = clock.now() - since;
      const { durationMs = ms, queuedMs = 0, use = null } = run ?? {};
      const seen = call.seenAs?.(outcome);
      const told = seen === undefined ? given : { ...given, udfPath: seen.udfPath };
      observer.runEnded("mutation", {
        outcome: seen?.outcome ?? outcome,
        ms,
        call: told,
        request,
        ts,
        durationMs,
        queuedMs,
        use,
      });
    });
    return answer;
  }

  /** Passes an answer on when the commits it shows have been told of here. */
  async #heardFirst(answer: Promise<MutationAnswer>): Promise<MutationAnswer> {
    const answered = await answer;
    await this.told(answered.ts);
    return answered;
  }

  async #actedFirst(answer: Promise<ActionAnswer>): Promise<Outcome> {
    const { outcome, ts } = await answer;
    await this.told(ts);
    return outcome;
  }

  /** Resolves when the commits up to this one were told of here, or after a bounded time. */
  async told(ts: number): Promise<void> {
    if (ts > this.#ts) await new Promise<void>((resolve) => this.#answers.arrived(ts, resolve));
  }

  get readerFree(): boolean {
    return this.#readers.free;
  }

  onReaderFree(listener: () => void): void {
    this.#readers.onFree(() => this.#tell([listener], undefined));
  }

  startWave(
    queries: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
    options: WaveOptions = {},
  ): Wave {
    const isRefused = queries.map((query) => this.#isRefused(query));
    const allowed = [...queries.keys()].filter((index) => isRefused[index] !== true);
    const wave = this.#readers.startWave(allowed.flatMap((index) => queries[index] ?? []), (at, answer) => {
      const index = allowed[at] ?? 0;
      const query = queries[index];
      if (query !== undefined) {
        const request = query.request ?? nextRequest();
        numberError(answer.outcome, request);
        this.#noteFailure(query, answer.outcome);
        const { queryMs } = this.#parts.timeouts ?? usualTimeouts;
        this.#parts.observer?.runEnded("query", queryEnd(query, { ...answer, queryMs, request }));
      }
      onAnswer(index, answer);
    }, options);
    if (allowed.length === queries.length) return wave;
    const refused = Promise.resolve().then(() => {
      for (const [index, query] of queries.entries()) {
        if (isRefused[index] === true) onAnswer(index, refusedAnswer(query, this.#ts));
      }
    });
    return { pinned: wave.pinned, done: Promise.all([wave.done, refused]).then(() => {}) };
  }

  refuses(udfPath: string, { blame }: Caller): boolean {
    return this.#refusals.refuses(udfPath, blame);
  }

  get slowKnown(): boolean {
    return this.#readers.slowKnown;
  }

  isSlow(call: Pick<FunctionCall, "udfPath" | "caller">): boolean {
    return this.#readers.isSlow(call);
  }

  slowReaderFree(): boolean {
    return this.#readers.slowFree();
  }

  act(call: FunctionCall): Promise<Outcome> {
    if (this.#isRefused(call)) return Promise.resolve(refusedFor(call.udfPath));
    const { leader } = this.#parts;
    if (leader?.act !== undefined) return this.#actedFirst(leader.act(call));
    const since = performance.now();
    const inMain = this.#mainActions.run(call);
    if (inMain === null) return this.#runners.act(call);
    return inMain.then((outcome) => {
      const request = call.request ?? nextRequest();
      numberError(outcome, request);
      this.#failures.note(call.udfPath, outcome);
      const ms = performance.now() - since;
      this.#parts.observer?.runEnded("action", actionEnd({ ...call, request }, { outcome, ms, queuedMs: 0 }));
      return outcome;
    });
  }

  /** Ends the actions of the app's that run in this turn, and begins none of it any more. */
  endTurn(turn: string): void {
    this.#runners.endTurn(turn);
  }

  #isRefused(call: FunctionCall): boolean {
    const { udfPath, origin, caller } = call;
    return caller !== undefined && origin !== "system" && this.#refusals.refuses(udfPath, caller.blame);
  }

  #noteFailure({ udfPath, origin, caller }: FunctionCall, outcome: Outcome): void {
    this.#failures.note(udfPath, outcome);
    // What the service runs for many, as it does scheduled functions, is nobody's alone.
    if (caller === undefined || origin === "system" || outcome.ok || !ranTooLong(outcome.error)) return;
    this.#refusals.ranOutOfTime(udfPath, caller.blame);
  }

  onCommits(listener: (entries: readonly CommitEntry[]) => void): void {
    this.#commitListeners.push(listener);
  }

  /** Called after each group, also one that changed nothing but replay records. */
  onGroup(listener: () => void): void {
    this.#groupListeners.push(listener);
  }

  /** Rows of the journal are safe elsewhere, or cannot be gone on from. */
  tendJournal(message: JournalConfirmed | JournalRestart): void {
    this.#writer.tendJournal(message);
  }

  /** The newest commit that an answer of this host may show something of: with {@linkcode retire} it may be another server's. */
  get answeredTs(): number {
    return Math.max(this.#ts, this.#passedTs);
  }

  /** Where the database of a server stands that follows another. Throws on one that does not. */
  get reached(): Reached {
    return this.#followingWriter.reached;
  }

  /**
   * Commits the journal rows that come next, of a server that follows another. Where one changes tables or indexes, readers
   * begin anew behind it. Rejects with a `RowsRefusedError`, or because the writer was lost; called again, it goes on.
   */
  async applyRows(rows: readonly JournalRow[]): Promise<Reached> {
    const writer = this.#followingWriter;
    let plain: JournalRow[] = [];
    for (const row of rows) {
      if (!changesCatalog(row)) {
        plain.push(row);
        continue;
      }
      if (plain.length > 0) await writer.apply(plain);
      plain = [];
      const bring = this.#bringsOther(row);
      await this.#oneByOne(() => bring === null ? this.#applyCatalog(row) : this.#applyVersion(row, bring));
    }
    return plain.length > 0 ? await writer.apply(plain) : writer.reached;
  }

  /** How the version is got that a row names, if it is another than is served. */
  #bringsOther(row: JournalRow): ((versions: VersionStore) => Promise<Version>) | null {
    const { code } = this.#parts;
    const bring = code?.bring;
    const named = bring === undefined ? undefined : versionNamed(row);
    const served = this.#version?.deployed ? this.#version.hash : null;
    if (bring === undefined || named === undefined || named === served) return null;
    return (versions) => bring(named, versions);
  }

  /**
   * Applies the row from which on another version is served. What cannot be had, or loaded, leaves everything as it was
   * before the row; once it is applied nothing is read until the version is there.
   */
  async #applyVersion(row: JournalRow, bring: (versions: VersionStore) => Promise<Version>): Promise<void> {
    const { starter, log } = this.#parts;
    const version = await bring(this.versions);
    using _prepared = await starter.prepare?.(version) ?? null;
    await this.#readers.hold();
    // Told when it can be read with its code: until then what was read before is of the ts before.
    const { ts } = await this.#followingWriter.apply([row], { tells: false }).catch((error) => {
      // A writer that was lost may have committed it: then nothing is read until the row comes again.
      if (error instanceof RowsRefusedError) this.#readers.release();
      throw error;
    });
    starter.use?.(version);
    const replaced = await this.#followingWriter.replace(async (ready) => {
      this.#declared(ready);
      await this.#readers.replace();
      this.#runners.replace();
      this.#version = version;
    }, { start: () => starter.start("writer", version) });
    if (!replaced.ok) throw new BrokenVersionError(replaced.message);
    this.#readers.release();
    this.#onGap(ts);
    await this.#served(version).catch((error) =>
      log("warn", "Old versions of the code were not removed", { error })
    );
  }

  /** No reader may look for an index that is going, nor work with tables it does not know. */
  async #applyCatalog(row: JournalRow): Promise<void> {
    await this.#readers.hold();
    try {
      await this.#followingWriter.apply([row]);
      await this.#readers.replace();
    } finally {
      this.#readers.release();
    }
    this.#tell(this.#reloadListeners, undefined);
  }

  get #followingWriter(): FollowingWriter {
    if (this.#following === null) throw new Error("This server does not follow another");
    return this.#following;
  }

  /** Takes note of a group that the leader has committed in the database of both; `entries` may be empty. */
  hear(entries: readonly CommitEntry[], ts: number): void {
    this.#onGroup(entries, ts);
  }

  /** Commits up to this one were made of which nothing was told. */
  missed(ts: number): void {
    this.#onGap(ts);
  }

  /** Queries wait until {@linkcode follow}. Resolves when those that run have their snapshots. */
  async holdQueries(): Promise<void> {
    await this.#readers.hold();
  }

  /** The leader serves this app from now on; `null`: what it served before. Rejects with why its version cannot be had. */
  follow(app: ServedApp | null): Promise<void> {
    return this.#oneByOne(async () => {
      try {
        if (app !== null) await this.#follow(app);
      } finally {
        this.#readers.release();
      }
      if (app !== null) this.#tell(this.#reloadListeners, undefined);
    });
  }

  async #follow(app: ServedApp): Promise<void> {
    const version = await this.versions.get(app.version);
    const held = await this.versions.hold(version);
    this.#held?.[Symbol.dispose]();
    this.#held = held;
    this.#version = version;
    this.#parts.starter.use?.(version);
    this.#declared(app);
    await this.#readers.replace();
    this.#runners.replace();
  }

  /** The app as other processes have to know it. Throws where the code is not kept in versions. */
  get app(): ServedApp {
    if (this.#version === null) throw new Error("The code of these isolates is not kept in versions");
    const functions = new Map([...this.#functions, ...this.#mainActions.infos()]);
    const { hash: version } = this.#version;
    return { version, functions: [...functions], crons: this.#crons, routes: this.#routes.routes };
  }

  /** Other processes read this database from now on. */
  accompany(companions: Companions): void {
    this.#companions = companions;
  }

  onReload(listener: () => void): void {
    this.#reloadListeners.push(listener);
  }

  serveQueries(run: (call: FunctionCall) => Promise<Outcome>): void {
    this.#serveQuery = run;
  }

  /** Actions that main runs: those that stand in front of the app's functions, and what stands behind `ctx` of actions. */
  serveActions(
    { actions, ctxActions, door }:
      & Readonly<Record<"actions" | "ctxActions", ReadonlyMap<string, MainAction>>>
      & { readonly door?: ActionDoor | null },
  ): void {
    this.#mainActions = new MainActions(actions, door);
    this.#ctxActions = new MainActions(ctxActions);
  }

  /** The versions of the code in the data folder. Throws where there are none. */
  get versions(): VersionStore {
    if (this.#parts.code === undefined) throw new Error("The code of these isolates is not kept in versions");
    return this.#parts.code.versions;
  }

  /** The version of the code that is served; `null` where there are none. */
  get version(): Version | null {
    return this.#version;
  }

  /** Loads the app's code as its author has it now. When it is broken, or cannot be kept, the old goes on serving. */
  reload(): Promise<ReplaceResult> {
    return this.#oneByOne(async () => {
      const { code } = this.#parts;
      if (code === undefined) return await this.#load(null);
      if (code.source === null) {
        return { ok: false, message: "The code is not served from a functions folder" };
      }
      try {
        return await this.#load(await code.versions.make(code.source));
      } catch (error) {
        return { ok: false, message: error instanceof Error ? error.message : String(error) };
      }
    });
  }

  /**
   * Loads a version of the code: a new writer makes the database fit its schema, between two commits readers and runners
   * follow, and actions under way end with the code they began with. When it is broken, or does not fit the data, what was
   * served before goes on. Calls follow one another. `swapped` runs when the new writer has made the database fit, before
   * its first commit.
   */
  load(version: Version, { swapped }: LoadOptions = {}): Promise<ReplaceResult> {
    return this.#oneByOne(() => this.#load(version, swapped));
  }

  /**
   * Loads a version in an isolate of its own, which looks at all documents in a snapshot and ends. Nothing is written and
   * nobody waits. Rejects with why the version cannot be loaded.
   */
  async check(version: Version, bounds: CheckBounds): Promise<AppCheck> {
    const started = await this.#parts.starter.check?.(version, bounds);
    if (started === undefined) throw new Error("These isolates cannot look at another version");
    if (!started.ok) throw new BrokenVersionError(started.message);
    const { ready: { check } } = started.isolate;
    await started.isolate.close();
    if (check === undefined) throw new Error("An isolate has not looked at what it was asked to");
    return check;
  }

  /** Has isolates stand by for the next edit of the code, beside the work that there is. */
  standBy(): void {
    this.#parts.starter.standBy?.();
  }

  /** What actions see as `ctx.env` from now on; those under way end with what they began with. */
  useEnv(env: Readonly<Record<string, string>>): void {
    this.#parts.starter.useEnv?.(env);
    this.#runners.replace();
  }

  /**
   * Lends the database to another server between two commits: nothing is committed here any more. The other one may change
   * tables and indexes, so queries wait too; those under way have their snapshots. `null` when that cannot be done now.
   */
  async lend(): Promise<Lent | null> {
    const { promise, resolve } = Promise.withResolvers<PassedCalls | null>();
    const onBack = () => void this.#oneByOne(() => this.#regained());
    if (await this.#writer.lend?.(promise, onBack) !== true) return null;
    this.#passing = promise;
    await this.#readers.hold();
    return {
      giveBack: () => {
        this.#passing = null;
        resolve(null);
      },
      passOn: (to) => {
        this.#writer.passOn?.((call) => to.mutate(call));
        this.#readers.passOn((call) => to.query(call));
        // Its commits are not told here: whatever is read is as new as it can be.
        this.#readers.heard(Infinity);
        resolve(to);
      },
    };
  }

  /**
   * For a server that does not write any more: when what is under way has ended mutations run elsewhere, also those that
   * wait. `false`: that cannot be done now. Queries go on.
   */
  async retire(mutate: PassedCalls["mutate"]): Promise<boolean> {
    const passed: PassedCalls["mutate"] = async (call) => {
      const answer = await mutate(call);
      this.#passedTs = Math.max(this.#passedTs, answer.ts);
      return answer;
    };
    return await this.#writer.retire?.(passed) ?? false;
  }

  /** Lets go of the database for good, but for reading. */
  async closeWriter(): Promise<void> {
    await this.#writer.close();
  }

  /** The other server may have changed tables and indexes, and the new writer has changed them back. */
  async #regained(): Promise<void> {
    await this.#readers.replace();
    this.#readers.release();
    this.#tell(this.#reloadListeners, undefined);
  }

  async #oneByOne<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#loading.then(work);
    this.#loading = result.catch(() => {});
    return await result;
  }

  /** `null`: whatever the starter has. */
  async #load(
    version: Version | null,
    swapped: LoadOptions["swapped"] = () => Promise.resolve(),
  ): Promise<ReplaceResult> {
    const { starter, log } = this.#parts;
    let held = false;
    // While they begin, what is served now goes on.
    using _prepared = version === null ? null : await starter.prepare?.(version) ?? null;
    const result = await this.#writer.replace(
      async (ready) => {
        // A lost isolate comes back with the new code from now on.
        if (version !== null) starter.use?.(version);
        this.#declared(ready);
        await swapped();
        await this.#readers.replace();
        this.#runners.replace();
        if (version !== null) this.#version = version;
      },
      {
        before: async () => {
          held = true;
          await Promise.all([this.#readers.hold(), this.#companions?.hold()]);
        },
        start: () => starter.start("writer", version ?? undefined),
      },
    );
    // Otherwise they may be held because the database is lent.
    if (held) this.#readers.release();
    if (held) this.#companions?.release(result.ok && version !== null ? this.app : null);
    if (!result.ok) return result;
    this.#tell(this.#reloadListeners, undefined);
    if (version !== null) {
      await this.#served(version).catch((error) =>
        log("warn", "Old versions of the code were not removed", { error })
      );
    }
    return result;
  }

  async #served(version: Version): Promise<void> {
    const held = await this.versions.hold(version);
    this.#held?.[Symbol.dispose]();
    this.#held = held;
    this.#version = version;
    await this.versions.served(version);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What is cut off from now on has not failed.
    this.#failures[Symbol.dispose]();
    await this.#runners.close();
    // The writer last: it leaves the database in one file when nobody else has it open.
    await this.#readers.close();
    await this.#writer.close();
    this.#answers.close();
    await this.#parts.starter[Symbol.asyncDispose]();
    this.#held?.[Symbol.dispose]();
    await this.#forget();
  }

  /** Removes a version that nobody has a use for. */
  async #forget(): Promise<void> {
    const { code } = this.#parts;
    if (code?.passing !== true) return;
    const { hash } = code.version;
    const known = (await code.versions.list()).find((version) => version.hash === hash);
    if (known?.servedAt === null) await code.versions.remove(hash);
  }

  #loaded(ready: Ready): void {
    this.#declared(ready);
    this.#ts = ready.ts;
    this.#readers.heard(ready.ts);
    this.#answers.heard(ready.ts);
  }

  #declared({ functions, crons = [], routes = [] }: Pick<Ready, "functions" | "crons" | "routes">): void {
    this.#functions = new Map(functions);
    this.#crons = crons;
    this.#routes = new RouteTable(routes);
  }

  #onGroup(entries: readonly CommitEntry[], ts: number): void {
    this.#ts = ts;
    if (entries.length > 0) this.#tell(this.#commitListeners, entries);
    this.#tell(this.#groupListeners, undefined);
    this.#readers.heard(ts);
    this.#answers.heard(ts);
  }

  #onGap(ts: number): void {
    this.#ts = ts;
    this.#tell(this.#reloadListeners, undefined);
    this.#readers.heard(ts);
    this.#answers.heard(ts);
  }

  /** One listener's fault must neither keep the others from hearing nor end an isolate. */
  #tell<Value>(listeners: readonly ((value: Value) => void)[], value: Value): void {
    for (const listener of listeners) {
      try {
        listener(value);
      } catch (error) {
        this.#parts.log("error", "A listener of the isolates failed", { error });
      }
    }
  }

  async #serve(kind: "query" | "mutation" | "action", call: FunctionCall): Promise<Outcome> {
    try {
      if (kind === "action") {
        return await this.#ctxActions.run(call) ??
          failed("unknown_function", unknownFunctionText(call.udfPath));
      }
      if (kind === "mutation") return (await this.mutate(call)).outcome;
      // What it wrote is not here: it would go on with what was before.
      if (this.#passedTs > this.#ts) {
        return failed("internal", "Another server leads now: what was written there cannot be read here", {
          retryable: true,
        });
      }
      const passed = this.#passing === null ? null : await this.#passing;
      if (passed !== null) return await passed.query(call);
      if (this.#serveQuery === null) throw new Error("No one serves queries");
      return await this.#serveQuery(call);
    } catch (error) {
      this.#parts.log("error", "A call of an action failed", { error });
      return failed("internal", error instanceof Error ? error.message : String(error));
    }
  }
}

/** A run that was cut short does not tell how long it was. */
function queryEnd(
  call: FunctionCall,
  { outcome, durationMs, queuedMs = 0, ts, use, queryMs, request }: QueryAnswer & {
    readonly queryMs: number;
    readonly request: number;
  },
): RunEnd {
  const late = !outcome.ok && ranTooLong(outcome.error);
  const ms = late ? queryMs : durationMs;
  return { outcome, ms, call, request, ts, durationMs: ms, queuedMs, use: use ?? null };
}

function actionEnd(
  call: FunctionCall,
  { outcome, ms, queuedMs }: { readonly outcome: Outcome; readonly ms: number; readonly queuedMs: number },
): RunEnd {
  const request = call.request ?? nextRequest();
  return {
    outcome,
    ms,
    call,
    request,
    ts: null,
    durationMs: Math.max(0, ms - queuedMs),
    queuedMs,
    use: null,
  };
}

/** The answer of a query that was not run. Nothing is known of it, so nobody else's subscription takes part in it. */
function refusedAnswer({ udfPath }: FunctionCall, ts: number): QueryAnswer {
  const outcome = refusedFor(udfPath);
  return { ts, outcome, readSet: unknownReads, scope: "session", nondeterministic: true, durationMs: 0 };
}
