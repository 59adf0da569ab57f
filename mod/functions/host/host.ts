/** The isolates of a server: one writer, readers and action runners. Implements `FunctionHost`. */
import type { JournalRow } from "../../engine/journal/journal_row.ts";
import type { CommitEntry } from "../../engine/types.ts";
import { isolateLimits } from "../limits.ts";
import type {
  Caller,
  FunctionCall,
  FunctionHost,
  FunctionInfo,
  MutationAnswer,
  MutationCall,
  QueryAnswer,
  QueryBatchOptions,
  QueryBatchRun,
  SkipGroup,
} from "../host_port.ts";
import { unknownReads } from "../host_port.ts";
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
import type { Version, VersionStore } from "../versions/version_store.ts";
import { CodeSwaps, type LoadOptions } from "./code/code_swaps.ts";
import { FollowedRows } from "./code/followed_rows.ts";
import { ServedCode } from "./code/served_code.ts";
import { CommitPublisher } from "./commit_publisher.ts";
import type { IsolateHostOptions } from "./host_options.ts";
import { type HostParts, openHostParts } from "./host_parts.ts";
import type { ActionAnswer, Companions, ServedApp } from "./leader_port.ts";
import { refusedFor, usualTimeouts } from "./outcomes.ts";
import { IsolateCensus } from "./process/isolate_census.ts";
import { ReaderPool } from "./readers/reader_pool.ts";
import type { RouteAnswer, RouteRequest } from "./runners/route_exchange.ts";
import { RouteRequests } from "./runners/route_requests.ts";
import { Runners } from "./runners/runners.ts";
import { RequestsInFlight } from "./requests_in_flight.ts";
import { RunReports } from "./run_reports.ts";
import { FollowingWriter } from "./writer/following_writer.ts";
import { SharedDatabaseWriter } from "./writer/shared_database_writer.ts";
import type { MutationWriter, ReplaceResult } from "./writer/mutation_writer.ts";
import { Writer } from "./writer/writer.ts";

export class IsolateHost implements FunctionHost, AsyncDisposable {
  /** Counts of running isolates. */
  readonly isolates: IsolateCensus;
  readonly #parts: HostParts;
  readonly #writer: MutationWriter;
  readonly #readers: ReaderPool;
  readonly #runners: Runners;
  readonly #requests: RouteRequests;
  readonly #news: CommitPublisher;
  readonly #reports: RunReports;
  readonly #served: ServedCode;
  readonly #swaps: CodeSwaps;
  readonly #inFlight = new RequestsInFlight();
  /** `null` if the server follows no other. */
  readonly #rows: FollowedRows | null;
  /** Set by `serveQueries`. */
  #serveQuery: ((call: FunctionCall) => Promise<Outcome>) | null = null;
  /** Set by `serveActions`. */
  #mainActions = new MainActions();
  /** Set by `serveActions`. */
  #ctxActions = new MainActions();

  private constructor(parts: HostParts) {
    const { starter, clock, log, cores, code, observer, timeouts = usualTimeouts } = parts;
    this.#parts = parts;
    this.isolates = parts.census ?? new IsolateCensus();
    const news = this.#news = new CommitPublisher({ clock, log });
    const reports = this.#reports = new RunReports({ clock, log, timeouts, ...(observer && { observer }) });
    const served = this.#served = new ServedCode(code);
    const following = parts.follows === true ? followingWriter(parts, news) : null;
    const writer = this.#writer = following ?? hearingWriter(parts) ?? ownWriter(parts, news);
    const { readersMax = isolateLimits.readersMax } = parts;
    const readers = this.#readers = new ReaderPool({
      ...{ starter, clock, log, cores, readersMax },
      spare: parts.spareReader === true,
      ts: () => news.ts,
      timeoutMs: timeouts.queryMs,
      isKnown: (udfPath) => served.functions.has(udfPath),
    });
    news.onPublished((ts) => readers.heard(ts));
    const runners = this.#runners = new Runners({
      starter,
      clock,
      log,
      serve: (kind, call) => this.#serve(kind, call),
      onEnd: (kind, end) => reports.actionEnded(kind, end),
      apart: parts.apart,
    });
    this.#requests = new RouteRequests((call, exchange) => runners.act(call, exchange));
    const together = { starter, readers, runners, served, news, code, log };
    const swaps = this.#swaps = new CodeSwaps({ ...together, writer, app: () => this.app });
    this.#rows = following && new FollowedRows({ ...together, writer: following, swaps });
  }

  /** Opens and begins. Throws like {@linkcode begin}. */
  static async start(options: IsolateHostOptions): Promise<IsolateHost> {
    return await IsolateHost.startWith(await openHostParts(options));
  }

  /** Like {@linkcode start}, with the given parts. */
  static async startWith(parts: HostParts): Promise<IsolateHost> {
    const host = new IsolateHost(parts);
    try {
      await host.begin();
    } catch (error) {
      await host[Symbol.asyncDispose]();
      throw error;
    }
    return host;
  }

  /** Creates a host whose calls wait until it has begun. Throws if there is no code to serve. */
  static async open(options: IsolateHostOptions): Promise<IsolateHost> {
    return new IsolateHost(await openHostParts(options));
  }

  /**
   * Starts the writer, which migrates the database to the app's schema, then a reader. If the app cannot be loaded, throws an
   * error with file and line, or table and document. The host must then be disposed.
   */
  async begin(): Promise<void> {
    const ready = await this.#writer.start();
    this.#served.declare(ready);
    this.#news.begin(ready.ts);
    // Waits for both in any case, because the end releases what they hold.
    const ends = await Promise.allSettled([this.#readers.start(), this.#holdCode()]);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async #holdCode(): Promise<void> {
    const { code, heard } = this.#parts;
    // The leader determines the served version.
    if (code !== undefined && heard !== undefined) await this.#served.hold(code.version);
    else if (code !== undefined && !code.passing) await this.#served.serve(code.version);
  }

  /** ts of the newest commit. Advanced with each group before listeners are called. */
  get ts(): number {
    return this.#news.ts;
  }

  /** Mutations not yet sent to the writer. */
  get mutationsWaiting(): number {
    return this.#writer.waiting;
  }

  /** Crons of the loaded app. */
  get crons(): readonly WireCron[] {
    return this.#served.crons;
  }

  /** Returns the key of the app's route for a request, or `null`. `pathname` is the raw path of the URL. */
  findRoute(method: string, pathname: string): string | null {
    return this.#served.routes.find(method, pathname);
  }

  /** Handles a request with a route. Resolves when the response starts. Never rejects. */
  respond(request: RouteRequest): Promise<RouteAnswer> {
    return this.#requests.respond(request);
  }

  info(udfPath: string): FunctionInfo | undefined {
    return this.#mainActions.info(udfPath) ?? this.#served.functions.get(udfPath);
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    return this.#inFlight.run(call, () => this.#mutate(call));
  }

  #mutate(given: MutationCall): Promise<MutationAnswer> {
    const reports = this.#reports;
    const since = reports.now();
    let call = given;
    if (reports.isRefused(given)) {
      const outcome = refusedFor(given.udfPath);
      if (given.replay === undefined) return Promise.resolve({ outcome, ts: this.ts, replayed: false });
      // A resent copy may have a recorded answer. Otherwise the rejection is recorded, and thereby final.
      const { retryable: _, ...refusal } = outcome.error;
      call = { ...given, udfPath: "", args: {}, failedWith: given.failedWith ?? refusal };
    }
    // The leader reports what it runs.
    if (this.#parts.leader !== undefined) return this.#afterPublished(this.#writer.mutate(call));
    const answer = this.#writer.mutate(call);
    answer.then((answered) => {
      // A recorded answer was reported when it was new.
      if (!answered.replayed) reports.mutationEnded(given, answered, since);
    });
    return answer;
  }

  /** Returns an answer when the commits it reflects have been published here. */
  async #afterPublished(answer: Promise<MutationAnswer>): Promise<MutationAnswer> {
    const answered = await answer;
    await this.waitForPublished(answered.ts);
    return answered;
  }

  async #actionAfterPublished(answer: Promise<ActionAnswer>): Promise<Outcome> {
    const { outcome, ts } = await answer;
    await this.waitForPublished(ts);
    return outcome;
  }

  /** Resolves when commits up to `ts` were published here, or after a bounded time. */
  async waitForPublished(ts: number): Promise<void> {
    await this.#news.published(ts);
  }

  get hasFreeReader(): boolean {
    return this.#readers.free;
  }

  onReaderFree(listener: () => void): void {
    this.#readers.onFree(() => this.#news.safely(listener));
  }

  startQueryBatch(
    queries: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
    options: QueryBatchOptions = {},
  ): QueryBatchRun {
    const isRefused = queries.map((query) => this.#reports.isRefused(query));
    const allowed = [...queries.keys()].filter((index) => isRefused[index] !== true);
    const wave = this.#readers.startBatch(allowed.flatMap((index) => queries[index] ?? []), (at, answer) => {
      const index = allowed[at] ?? 0;
      const query = queries[index];
      if (query !== undefined) this.#reports.queryEnded(query, answer);
      onAnswer(index, answer);
    }, options);
    if (allowed.length === queries.length) return wave;
    const refused = Promise.resolve().then(() => {
      for (const [index, query] of queries.entries()) {
        if (isRefused[index] === true) onAnswer(index, refusedAnswer(query, this.ts));
      }
    });
    return { pinned: wave.pinned, done: Promise.all([wave.done, refused]).then(() => {}) };
  }

  isBlocked(udfPath: string, caller: Caller): boolean {
    return this.#reports.refuses(udfPath, caller);
  }

  get hasSlowQueries(): boolean {
    return this.#readers.hasSlowQueries;
  }

  isSlow(call: Pick<FunctionCall, "udfPath" | "caller">): boolean {
    return this.#readers.isSlow(call);
  }

  hasFreeSlowReader(): boolean {
    return this.#readers.slowFree();
  }

  act(call: FunctionCall): Promise<Outcome> {
    if (this.#reports.isRefused(call)) return Promise.resolve(refusedFor(call.udfPath));
    const { leader } = this.#parts;
    if (leader?.act !== undefined) return this.#actionAfterPublished(leader.act(call));
    const since = performance.now();
    const inMain = this.#mainActions.run(call);
    if (inMain === null) return this.#runners.act(call);
    return inMain.then((outcome) => {
      this.#reports.mainActionEnded(call, { outcome, ms: performance.now() - since });
      return outcome;
    });
  }

  /** Ends the actions of the separate runner pool, including queued ones. Resolves when their processes are gone. */
  async endApart(): Promise<void> {
    await this.#runners.endApart();
  }

  onCommits(listener: (entries: readonly CommitEntry[]) => void, passes?: SkipGroup): void {
    this.#news.onCommits(listener, passes);
  }

  /** Commits published since the start. */
  get commitCount(): number {
    return this.#news.count;
  }

  /** Registers a listener for groups, including those that only changed replay records. */
  onGroup(listener: () => void): void {
    this.#news.onGroup(listener);
  }

  onReload(listener: () => void): void {
    this.#news.onReload(listener);
  }

  /** Confirms journal rows as stored elsewhere, or abandons a generation. */
  updateJournal(message: JournalConfirmed | JournalRestart): void {
    this.#writer.updateJournal(message);
  }

  /** History position of a following server's database. Throws on other servers. */
  get reached(): Reached {
    return this.#followedRows.reached;
  }

  /**
   * Commits the next journal rows on a following server. Rows that change tables or indexes restart the readers. Rejects with a
   * `RowsRefusedError`, or if the writer was lost. Calling it again continues.
   */
  async applyRows(rows: readonly JournalRow[]): Promise<Reached> {
    return await this.#followedRows.apply(rows);
  }

  get #followedRows(): FollowedRows {
    if (this.#rows === null) throw new Error("This server does not follow another");
    return this.#rows;
  }

  /** Publishes a group that the leader committed in the shared database. `entries` may be empty. */
  hear(entries: readonly CommitEntry[], ts: number): void {
    this.#news.group(entries, ts);
  }

  /** Handles commits up to this one whose entries are unknown. */
  missed(ts: number): void {
    this.#news.gap(ts);
  }

  /** Pauses queries until {@linkcode follow}. Resolves when running ones have their snapshots. */
  async holdQueries(): Promise<void> {
    await this.#readers.hold();
  }

  /** Switches to the leader's app. `null` keeps the current one. Rejects if its version cannot be fetched. */
  follow(app: ServedApp | null): Promise<void> {
    return this.#swaps.follow(app);
  }

  /** The app, as described to other processes. Throws if the code is not stored in versions. */
  get app(): ServedApp {
    const { version, functions, crons, routes } = this.#served;
    if (version === null) throw new Error("The code of these isolates is not kept in versions");
    const known = new Map([...functions, ...this.#mainActions.infos()]);
    return { version: version.hash, functions: [...known], crons, routes: routes.routes };
  }

  /** Adds other processes that read this database. */
  accompany(companions: Companions): void {
    this.#swaps.accompany(companions);
  }

  serveQueries(run: (call: FunctionCall) => Promise<Outcome>): void {
    this.#serveQuery = run;
  }

  /** Sets the actions that main runs: those that precede the app's functions, and those behind `ctx` of actions. */
  serveActions(
    { actions, ctxActions, door }:
      & Readonly<Record<"actions" | "ctxActions", ReadonlyMap<string, MainAction>>>
      & { readonly door?: ActionDoor | null },
  ): void {
    this.#mainActions = new MainActions(actions, door);
    this.#ctxActions = new MainActions(ctxActions);
  }

  /** The versions of the code in the data folder. Throws without versions. */
  get versions(): VersionStore {
    return this.#served.versions;
  }

  /** The served version of the code. `null` without versions. */
  get version(): Version | null {
    return this.#served.version;
  }

  /** Loads the author's current code. If it is broken or cannot be stored, the old code stays in service. */
  reload(): Promise<ReplaceResult> {
    return this.#swaps.reload();
  }

  /**
   * Loads a version of the code. A new writer migrates the database, readers and runners follow between two commits, and running
   * actions finish with their code. If the version is broken or does not match the data, the old one stays in service. Calls
   * run one after another. `confirm` may reject the swap immediately before it. `swapped` runs after the migration, before the
   * new writer's first commit.
   */
  load(version: Version, options: LoadOptions = {}): Promise<ReplaceResult> {
    return this.#swaps.load(version, options);
  }

  /** Loads a version in a separate isolate that checks all documents in a snapshot. Writes nothing. Rejects if it cannot be loaded. */
  check(version: Version, bounds: CheckBounds): Promise<AppCheck> {
    return this.#swaps.check(version, bounds);
  }

  /** Prestarts isolates for the next edit of the code. */
  standBy(): void {
    this.#parts.starter.standBy?.();
  }

  /** Sets `ctx.env` of actions. Running actions keep theirs. */
  useEnv(env: Readonly<Record<string, string>>): void {
    this.#parts.starter.useEnv?.(env);
    this.#runners.replace();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Runs that are aborted from now on have not failed.
    this.#reports[Symbol.dispose]();
    await using ending = new AsyncDisposableStack();
    ending.defer(() => this.#served.release());
    // Ends every isolate in any case.
    ending.use(this.#parts.starter);
    await this.#runners.close();
    // The writer last: it checkpoints the database into one file if no one else has it open.
    await this.#readers.close();
    await this.#writer.close();
    this.#news.close();
  }

  async #serve(kind: "query" | "mutation" | "action", call: FunctionCall): Promise<Outcome> {
    try {
      if (kind === "action") {
        return await this.#ctxActions.run(call) ??
          failed("unknown_function", unknownFunctionText(call.udfPath));
      }
      if (kind === "mutation") return (await this.mutate(call)).outcome;
      if (this.#serveQuery === null) throw new Error("No one serves queries");
      return await this.#serveQuery(call);
    } catch (error) {
      this.#parts.log("error", "A call of an action failed", { error });
      return failed("internal", error instanceof Error ? error.message : String(error));
    }
  }
}

function followingWriter({ starter, clock, log, leader }: HostParts, news: CommitPublisher): FollowingWriter {
  return new FollowingWriter({
    starter,
    clock,
    log,
    ...(leader && { leader }),
    onGroup: (group) => news.followed(group),
    onGap: (ts) => news.gap(ts),
  });
}

/** `null` if the server owns its database. */
function hearingWriter({ leader, heard }: HostParts): SharedDatabaseWriter | null {
  return heard === undefined || leader === undefined ? null : new SharedDatabaseWriter({ leader, heard });
}

function ownWriter(parts: HostParts, news: CommitPublisher): Writer {
  const { starter, clock, log, batchPrefix, awake, observer, timeouts = usualTimeouts } = parts;
  return new Writer({
    starter,
    clock,
    log,
    batchPrefix,
    timeoutMs: timeouts.mutationMs,
    storesMs: parts.rows?.waitMs ?? 0,
    ...(awake && { awake }),
    ...(observer && { observer }),
    ...tellsTo(news),
  });
}

/** How a writer publishes its commits. */
function tellsTo(news: CommitPublisher) {
  return {
    onGroup: (entries: readonly CommitEntry[], ts: number) => news.group(entries, ts),
    onGap: (ts: number) => news.gap(ts),
  };
}

/** The answer of a query that was not run. Its narrow scope keeps it from other subscriptions. */
function refusedAnswer({ udfPath }: FunctionCall, ts: number): QueryAnswer {
  const outcome = refusedFor(udfPath);
  return { ts, outcome, readSet: unknownReads, scope: "session", nondeterministic: true, durationMs: 0 };
}
