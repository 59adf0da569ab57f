/** The isolates as the rest of the server sees them: one writer, readers, action runners. */
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
import { CommitNews } from "./commit_news.ts";
import type { IsolateHostOptions } from "./host_options.ts";
import { type HostParts, openHostParts } from "./host_parts.ts";
import type { ActionAnswer, Companions, ServedApp } from "./leader_port.ts";
import { Lending, type Lent, type PassedCalls } from "./lending.ts";
import { refusedFor, usualTimeouts } from "./outcomes.ts";
import type { Ready } from "./process/isolate.ts";
import { IsolateCensus } from "./process/isolate_census.ts";
import { ReaderPool } from "./readers/reader_pool.ts";
import type { RouteAnswer, RouteRequest } from "./runners/route_exchange.ts";
import { RouteRequests } from "./runners/route_requests.ts";
import { Runners } from "./runners/runners.ts";
import { RequestsInFlight } from "./requests_in_flight.ts";
import { RunReports } from "./run_reports.ts";
import { FollowingWriter } from "./writer/following_writer.ts";
import { HearingWriter } from "./writer/hearing_writer.ts";
import type { MutationWriter, ReplaceResult } from "./writer/mutation_writer.ts";
import { Writer } from "./writer/writer.ts";

export class IsolateHost implements FunctionHost, AsyncDisposable {
  /** Which isolates there are. */
  readonly isolates: IsolateCensus;
  readonly #parts: HostParts;
  readonly #writer: MutationWriter;
  readonly #readers: ReaderPool;
  readonly #runners: Runners;
  readonly #requests: RouteRequests;
  readonly #news: CommitNews;
  readonly #reports: RunReports;
  readonly #served: ServedCode;
  readonly #swaps: CodeSwaps;
  readonly #lending: Lending;
  readonly #inFlight = new RequestsInFlight();
  /** `null` on a server that follows nobody. */
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
    const news = this.#news = new CommitNews({ clock, log });
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
    news.onTold((ts) => readers.heard(ts));
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
    this.#lending = new Lending({ writer, readers, onBack: () => void swaps.regained() });
  }

  /** Opens and begins. Throws as {@linkcode begin}. */
  static async start(options: IsolateHostOptions): Promise<IsolateHost> {
    return await IsolateHost.startWith(await openHostParts(options));
  }

  /** Like {@linkcode start}, with given parts. */
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

  /** What is asked of it waits until it has begun. Throws when there is no code to serve. */
  static async open(options: IsolateHostOptions): Promise<IsolateHost> {
    return new IsolateHost(await openHostParts(options));
  }

  /**
   * Starts the writer, which makes the database fit the app's schema, then a reader. Throws with the reason, which names
   * file and line or table and document, when the app cannot be loaded; all that is left to do then is to dispose of it.
   */
  async begin(): Promise<void> {
    const continues = this.#parts.continues === true;
    const early = continues ? this.#readers.start() : null;
    const held = continues ? this.#holdCode() : null;
    for (const begun of [early, held]) begun?.catch(() => {});
    // All are waited for whatever the others come to: what is held is let go of at the end.
    const ready = await this.#writer.start().catch(async (error) => {
      await Promise.allSettled([early, held]);
      throw error;
    });
    this.#served.declare(ready);
    this.#news.begin(ready.ts);
    const ends = await Promise.allSettled([this.#startReading(early, ready), held ?? this.#holdCode()]);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  /** One that began beside the writer knows the tables as they were before: as a rule they still are. */
  async #startReading(early: Promise<void> | null, { changed = false }: Ready): Promise<void> {
    const reads = await early?.then(() => true, () => false) ?? false;
    if (!reads) await this.#readers.start();
    else if (changed) await this.#readers.replace();
  }

  async #holdCode(): Promise<void> {
    const { code, heard } = this.#parts;
    // It is the leader that says what is served.
    if (code !== undefined && heard !== undefined) await this.#served.hold(code.version);
    else if (code !== undefined && !code.passing) await this.#served.serve(code.version);
  }

  /** ts of the newest commit. Advanced with each group, before the listeners are told of it. */
  get ts(): number {
    return this.#news.ts;
  }

  /** Mutations that the writer has not taken yet. */
  get mutationsWaiting(): number {
    return this.#writer.waiting;
  }

  /** The app's crons, as its code is loaded now. */
  get crons(): readonly WireCron[] {
    return this.#served.crons;
  }

  /** The key of the app's route for a request, or `null`. `pathname` is as it stands in the URL. */
  findRoute(method: string, pathname: string): string | null {
    return this.#served.routes.find(method, pathname);
  }

  /** Answers a request by a route. Resolves when the response begins. Never rejects. */
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
      // A copy that is sent again may have a recorded answer. Otherwise the refusal is recorded, and thereby final.
      const { retryable: _, ...refusal } = outcome.error;
      call = { ...given, udfPath: "", args: {}, failedWith: given.failedWith ?? refusal };
    }
    // The leader tells of what it runs.
    if (this.#parts.leader !== undefined) return this.#heardFirst(this.#writer.mutate(call));
    const answer = this.#writer.mutate(call);
    answer.then((answered) => {
      // A recorded answer was told when it was new, and whoever ran what was passed on tells of it.
      if (!answered.replayed && this.#lending.passing === null) reports.mutationEnded(given, answered, since);
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
    await this.#news.told(ts);
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
    const wave = this.#readers.startWave(allowed.flatMap((index) => queries[index] ?? []), (at, answer) => {
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
    return this.#readers.slowKnown;
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
    if (leader?.act !== undefined) return this.#actedFirst(leader.act(call));
    const since = performance.now();
    const inMain = this.#mainActions.run(call);
    if (inMain === null) return this.#runners.act(call);
    return inMain.then((outcome) => {
      this.#reports.mainActionEnded(call, { outcome, ms: performance.now() - since });
      return outcome;
    });
  }

  /** Ends the app's actions that run apart, and answers those that wait. Resolves when nothing of them can go on. */
  async endApart(): Promise<void> {
    await this.#runners.endApart();
  }

  onCommits(listener: (entries: readonly CommitEntry[]) => void, passes?: SkipGroup): void {
    this.#news.onCommits(listener, passes);
  }

  /** How many commits were told of since the start. */
  get commitCount(): number {
    return this.#news.count;
  }

  /** Called after each group, also one that changed nothing but replay records. */
  onGroup(listener: () => void): void {
    this.#news.onGroup(listener);
  }

  onReload(listener: () => void): void {
    this.#news.onReload(listener);
  }

  /** Called when an answer waits for a commit that was not told of here yet. */
  onAwaited(listener: () => void): void {
    this.#news.onAwaited(listener);
  }

  /** Rows of the journal are safe elsewhere, or cannot be gone on from. */
  tendJournal(message: JournalConfirmed | JournalRestart): void {
    this.#writer.tendJournal(message);
  }

  /** The newest commit that an answer of this host may show something of: with {@linkcode retire} it may be another server's. */
  get answeredTs(): number {
    return Math.max(this.ts, this.#lending.passedTs);
  }

  /** Where the database of a server stands that follows another. Throws on one that does not. */
  get reached(): Reached {
    return this.#followedRows.reached;
  }

  /**
   * Commits the journal rows that come next, of a server that follows another. Where one changes tables or indexes, readers
   * begin anew behind it. Rejects with a `RowsRefusedError`, or because the writer was lost; called again, it goes on.
   */
  async applyRows(rows: readonly JournalRow[]): Promise<Reached> {
    return await this.#followedRows.apply(rows);
  }

  get #followedRows(): FollowedRows {
    if (this.#rows === null) throw new Error("This server does not follow another");
    return this.#rows;
  }

  /** Takes note of a group that the leader has committed in the database of both; `entries` may be empty. */
  hear(entries: readonly CommitEntry[], ts: number): void {
    this.#news.group(entries, ts);
  }

  /** Commits up to this one were made of which nothing was told. */
  missed(ts: number): void {
    this.#news.gap(ts);
  }

  /** Queries wait until {@linkcode follow}. Resolves when those that run have their snapshots. */
  async holdQueries(): Promise<void> {
    await this.#readers.hold();
  }

  /** The leader serves this app from now on; `null`: what it served before. Rejects with why its version cannot be had. */
  follow(app: ServedApp | null): Promise<void> {
    return this.#swaps.follow(app);
  }

  /** The app as other processes have to know it. Throws where the code is not kept in versions. */
  get app(): ServedApp {
    const { version, functions, crons, routes } = this.#served;
    if (version === null) throw new Error("The code of these isolates is not kept in versions");
    const known = new Map([...functions, ...this.#mainActions.infos()]);
    return { version: version.hash, functions: [...known], crons, routes: routes.routes };
  }

  /** Other processes read this database from now on. */
  accompany(companions: Companions): void {
    this.#swaps.accompany(companions);
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
    return this.#served.versions;
  }

  /** The version of the code that is served; `null` where there are none. */
  get version(): Version | null {
    return this.#served.version;
  }

  /** Loads the app's code as its author has it now. When it is broken, or cannot be kept, the old goes on serving. */
  reload(): Promise<ReplaceResult> {
    return this.#swaps.reload();
  }

  /**
   * Loads a version of the code: a new writer makes the database fit its schema, between two commits readers and runners
   * follow, and actions under way end with the code they began with. When it is broken, or does not fit the data, what was
   * served before goes on. Calls follow one another. `confirm` may refuse it right before that. `swapped` runs when the new writer has made the database fit, before
   * its first commit.
   */
  load(version: Version, options: LoadOptions = {}): Promise<ReplaceResult> {
    return this.#swaps.load(version, options);
  }

  /**
   * Loads a version in an isolate of its own, which looks at all documents in a snapshot and ends. Nothing is written and
   * nobody waits. Rejects with why the version cannot be loaded.
   */
  check(version: Version, bounds: CheckBounds): Promise<AppCheck> {
    return this.#swaps.check(version, bounds);
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
  lend(): Promise<Lent | null> {
    return this.#lending.lend();
  }

  /**
   * For a server that does not write any more: when what is under way has ended mutations run elsewhere, also those that
   * wait. `false`: that cannot be done now. Queries go on.
   */
  retire(mutate: PassedCalls["mutate"]): Promise<boolean> {
    return this.#lending.retire(mutate);
  }

  /** No commits are told of here any more: answers that show newer ones go on. */
  letAnswersGo(): void {
    this.#news.close();
    this.#readers.heard(Infinity);
  }

  /** Lets go of the database for good, but for reading. */
  async closeWriter(): Promise<void> {
    await this.#writer.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What is cut off from now on has not failed.
    this.#reports[Symbol.dispose]();
    await this.#runners.close();
    // The writer last: it leaves the database in one file when nobody else has it open.
    await this.#readers.close();
    await this.#writer.close();
    this.#news.close();
    await this.#parts.starter[Symbol.asyncDispose]();
    await this.#served.release();
  }

  async #serve(kind: "query" | "mutation" | "action", call: FunctionCall): Promise<Outcome> {
    try {
      if (kind === "action") {
        return await this.#ctxActions.run(call) ??
          failed("unknown_function", unknownFunctionText(call.udfPath));
      }
      if (kind === "mutation") return (await this.mutate(call)).outcome;
      // What it wrote is not here: it would go on with what was before.
      if (this.#lending.passedTs > this.ts) {
        return failed("internal", "Another server leads now: what was written there cannot be read here", {
          retryable: true,
        });
      }
      const { passing } = this.#lending;
      const passed = passing === null ? null : await passing;
      if (passed !== null) return await passed.query(call);
      if (this.#serveQuery === null) throw new Error("No one serves queries");
      return await this.#serveQuery(call);
    } catch (error) {
      this.#parts.log("error", "A call of an action failed", { error });
      return failed("internal", error instanceof Error ? error.message : String(error));
    }
  }
}

function followingWriter({ starter, clock, log, leader }: HostParts, news: CommitNews): FollowingWriter {
  return new FollowingWriter({
    starter,
    clock,
    log,
    ...(leader && { leader }),
    onGroup: (group) => news.followed(group),
    onGap: (ts) => news.gap(ts),
  });
}

/** `null` where the database is this server's own. */
function hearingWriter({ leader, heard }: HostParts): HearingWriter | null {
  return heard === undefined || leader === undefined ? null : new HearingWriter({ leader, heard });
}

function ownWriter(parts: HostParts, news: CommitNews): Writer {
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

/** How a writer tells of its commits. */
function tellsTo(news: CommitNews) {
  return {
    onGroup: (entries: readonly CommitEntry[], ts: number) => news.group(entries, ts),
    onGap: (ts: number) => news.gap(ts),
  };
}

/** The answer of a query that was not run. Nothing is known of it, so nobody else's subscription takes part in it. */
function refusedAnswer({ udfPath }: FunctionCall, ts: number): QueryAnswer {
  const outcome = refusedFor(udfPath);
  return { ts, outcome, readSet: unknownReads, scope: "session", nondeterministic: true, durationMs: 0 };
}
