/**
 * The child processes ("isolates") of a server: readers, action runners and, unless another process writes this database, one
 * writer. On a follower, the writer applies the rows of another server. Implements `FunctionHost` for the sync hub and HTTP
 * calls. Call functions only after `begin`; their failures are outcomes, not rejections. Commits are published in ts order,
 * before the answers of their mutations. If another process commits, an answer waits for them for a bounded time. Disposal ends
 * every isolate.
 */
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
  QueryCall,
  QueryReaders,
  SkipGroup,
} from "../host_port.ts";
import { unknownReads } from "../host_port.ts";
import { type ActionAccess, type MainAction, MainActions } from "../main_actions.ts";
import { failed, type Outcome, unknownFunctionText } from "../outcome.ts";
import type { JournalConfirmed, JournalRestart } from "../wire/messages.ts";
import { AdHocQueries } from "./code/ad_hoc_queries.ts";
import { CodeSwaps } from "./code/code_swaps.ts";
import { FollowedRows } from "./code/followed_rows.ts";
import { ServedCode } from "./code/served_code.ts";
import { CommitPublisher } from "./commit_publisher.ts";
import type { IsolateHostOptions } from "./host_options.ts";
import { type HostParts, openHostParts } from "./host_parts.ts";
import type { LeaderPort } from "./leader_port.ts";
import { refusedFor, usualTimeouts } from "./outcomes.ts";
import { IsolateStats } from "./process/isolate_stats.ts";
import { ReaderPool } from "./readers/reader_pool.ts";
import { RouteRequests } from "./runners/route_requests.ts";
import { Runners } from "./runners/runners.ts";
import { RequestsInFlight } from "./requests_in_flight.ts";
import { RunReports } from "./run_reports.ts";
import { FollowingWriter } from "./writer/following_writer.ts";
import { SharedDatabaseWriter } from "./writer/shared_database_writer.ts";
import type { MutationWriter } from "./writer/mutation_writer.ts";
import { Writer } from "./writer/writer.ts";

export class IsolateHost implements FunctionHost, AsyncDisposable {
  /** Which batches of queries are accepted now. */
  readonly readers: QueryReaders;
  /** The app's HTTP routes. */
  readonly routes: Pick<RouteRequests, "find" | "respond">;
  /** The loaded app. */
  readonly code: ServedCode;
  /** Replaces the loaded app. */
  readonly swaps: CodeSwaps;
  /** Published commits. A host whose commits come from another process receives them here. */
  readonly commits: CommitPublisher;
  /** Applies journal rows of another server. `null` if this server follows no other. */
  readonly rows: FollowedRows | null;
  /** Counts of running isolates. */
  readonly isolates: IsolateStats;
  readonly #parts: HostParts;
  readonly #writer: MutationWriter;
  readonly #readers: ReaderPool;
  readonly #runners: Runners;
  readonly #reports: RunReports;
  readonly #inFlight = new RequestsInFlight();
  /** Set by `serveQueries`. */
  #serveQuery: ((call: FunctionCall) => Promise<Outcome>) | null = null;
  /** Set by `serveActions`. */
  #ctxActions = new MainActions();

  constructor(parts: HostParts) {
    const { starter, clock, log, cores, code, observer, timeouts = usualTimeouts } = parts;
    this.#parts = parts;
    this.isolates = parts.isolateStats ?? new IsolateStats();
    const commits = this.commits = new CommitPublisher({ clock, log });
    const served = this.code = new ServedCode(code);
    const version = () => served.version?.hash ?? null;
    const reports = this.#reports = new RunReports({
      ...{ clock, log, timeouts, version },
      ...(observer && { observer }),
    });
    const writer = this.#writer = writerOf(parts, { commits, inFlight: this.#inFlight });
    const { readersMax = isolateLimits.readersMax } = parts;
    const readers = this.readers = this.#readers = new ReaderPool({
      ...{ starter, clock, log, cores, readersMax },
      spare: parts.spareReader === true,
      ts: () => commits.ts,
      version,
      timeoutMs: timeouts.queryMs,
      isKnown: (udfPath) => served.hasFunction(udfPath),
    });
    commits.onPublished((ts) => readers.published(ts));
    const runners = this.#runners = new Runners({
      starter,
      clock,
      log,
      version,
      serve: (kind, call) => this.#serve(kind, call),
      onEnd: (kind, end) => reports.actionEnded(kind, end),
      dedicatedQueue: parts.dedicatedQueue,
    });
    this.routes = new RouteRequests({
      routes: () => served.routes,
      run: (call, exchange) => runners.act(this.#traced(call), exchange),
    });
    const adHoc = new AdHocQueries({ starter, served, clock, timeoutMs: timeouts.queryMs });
    const shared = { starter, adHoc, readers, runners, served, commits, code, log };
    const swaps = this.swaps = new CodeSwaps({ ...shared, writer });
    this.rows = writer instanceof FollowingWriter ? new FollowedRows({ ...shared, writer, swaps }) : null;
  }

  /** Opens and begins. Throws like {@linkcode begin}. */
  static async start(options: IsolateHostOptions): Promise<IsolateHost> {
    const host = await IsolateHost.open(options);
    try {
      await host.begin();
    } catch (error) {
      await host[Symbol.asyncDispose]();
      throw error;
    }
    return host;
  }

  /** Creates a host. Call `begin` before any function. Throws if there is no code to serve. */
  static async open(options: IsolateHostOptions): Promise<IsolateHost> {
    return new IsolateHost(await openHostParts(options));
  }

  /** Starts the writer. If the app cannot be loaded, throws with file and line; the host must then be disposed. */
  async begin(): Promise<void> {
    const ready = await this.#writer.start();
    this.code.declare(ready);
    this.commits.begin(ready.ts);
    await this.#holdCode();
  }

  async #holdCode(): Promise<void> {
    const { code, commitSource } = this.#parts;
    // The leader determines the served version.
    if (code !== undefined && commitSource?.from === "leader") await this.code.hold(code.version);
    else if (code !== undefined && !code.temporary) await this.code.serve(code.version);
  }

  /** ts of the newest commit. Advanced with each group before listeners are called. */
  get ts(): number {
    return this.commits.ts;
  }

  /** Mutations not yet sent to the writer. */
  get mutationsWaiting(): number {
    return this.#writer.waiting;
  }

  info(udfPath: string): FunctionInfo | undefined {
    return this.code.info(udfPath);
  }

  /** Runs a mutation. A resent copy of a call in flight gets the same outcome. */
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
    if (this.#leader !== undefined) return this.#afterPublished(this.#writer.mutate(call));
    const answer = this.#writer.mutate(call);
    answer.then((answered) => {
      // A recorded answer was reported when it was new.
      if (answered.replayed) return;
      if (!this.#isServiceQuery(given)) return reports.mutationEnded(given, answered, since);
      const { outcome, ts, run } = answered;
      reports.queryEnded(given, { outcome, ts, durationMs: 0, ...run });
    });
    return answer;
  }

  /** Whether the writer runs it as a query: background work of the service reads there. */
  #isServiceQuery({ origin, udfPath }: FunctionCall): boolean {
    return origin === "system" && this.info(udfPath)?.kind === "query";
  }

  /** Runs mutations, and actions that do not run locally. Absent if mutations run here or are refused. */
  get #leader(): LeaderPort | undefined {
    const { commitSource } = this.#parts;
    return commitSource === undefined || commitSource.from === "writer" ? undefined : commitSource.leader;
  }

  /** Returns an answer when the commits it reflects have been published here, or after a bounded time. */
  async #afterPublished<Answer extends { readonly ts: number }>(answer: Promise<Answer>): Promise<Answer> {
    const answered = await answer;
    await this.commits.published(answered.ts);
    return answered;
  }

  startQueryBatch(
    queries: readonly QueryCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
    options: QueryBatchOptions = {},
  ): QueryBatchRun {
    const isRefused = queries.map((query) => this.#reports.isRefused(query));
    const allowed = [...queries.keys()].filter((index) => isRefused[index] !== true);
    const run = this.#readers.startBatch(allowed.flatMap((index) => queries[index] ?? []), (at, answer) => {
      const index = allowed[at] ?? 0;
      const query = queries[index];
      if (query !== undefined) this.#reports.queryEnded(query, answer);
      onAnswer(index, answer);
    }, options);
    if (allowed.length === queries.length) return run;
    const refused = Promise.resolve().then(() => {
      for (const [index, query] of queries.entries()) {
        if (isRefused[index] === true) onAnswer(index, refusedAnswer(query, this.ts));
      }
    });
    return { pinned: run.pinned, done: Promise.all([run.done, refused]).then(() => {}) };
  }

  isBlocked(udfPath: string, caller: Caller): boolean {
    return this.#reports.refuses(udfPath, caller);
  }

  act(call: FunctionCall): Promise<Outcome> {
    if (this.#reports.isRefused(call)) return Promise.resolve(refusedFor(call.udfPath));
    const leader = this.#leader;
    if (leader?.act !== undefined) {
      return this.#afterPublished(leader.act(call)).then(({ outcome }) => outcome);
    }
    const since = performance.now();
    const inMain = this.code.mainActions.run(call);
    if (inMain === null) return this.#runners.act(this.#traced(call));
    return inMain.then((outcome) => {
      this.#reports.mainActionEnded(call, { outcome, ms: performance.now() - since });
      return outcome;
    });
  }

  #traced(call: FunctionCall): FunctionCall {
    const trace = call.trace === undefined ? this.#parts.observer?.startTrace?.() : undefined;
    return trace === undefined ? call : { ...call, trace };
  }

  /** Ends the actions of the separate runner pool, including queued ones. Resolves when their processes are gone. */
  async endDedicatedRuns(): Promise<void> {
    await this.#runners.endDedicatedRuns();
  }

  onCommits(listener: (entries: readonly CommitEntry[]) => void, skip?: SkipGroup): void {
    this.commits.onCommits(listener, skip);
  }

  onReload(listener: () => void): void {
    this.commits.onReload(listener);
  }

  /** Confirms journal rows as stored elsewhere, or abandons a generation. */
  updateJournal(message: JournalConfirmed | JournalRestart): void {
    this.#writer.updateJournal(message);
  }

  /** Sets how queries called by actions are run. They fail until then. */
  serveQueries(run: (call: FunctionCall) => Promise<Outcome>): void {
    this.#serveQuery = run;
  }

  /**
   * Sets the actions that main runs: those that take precedence over the app's functions, and those behind `ctx` of actions.
   */
  serveActions(
    { actions, ctxActions, access }:
      & Readonly<Record<"actions" | "ctxActions", ReadonlyMap<string, MainAction>>>
      & { readonly access?: ActionAccess | null },
  ): void {
    this.code.mainActions = new MainActions(actions, access);
    this.#ctxActions = new MainActions(ctxActions);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Runs that are aborted from now on have not failed.
    this.#reports[Symbol.dispose]();
    await using ending = new AsyncDisposableStack();
    ending.defer(() => this.code.release());
    // Ends every isolate in any case.
    ending.use(this.#parts.starter);
    await this.#runners.close();
    // The writer last: it checkpoints the database into one file if no one else has it open.
    await this.#readers.close();
    await this.#parts.starter.endOthers?.();
    await this.#writer.close();
    this.commits.close();
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

function writerOf(
  parts: HostParts,
  { commits, inFlight }: { readonly commits: CommitPublisher; readonly inFlight: RequestsInFlight },
): MutationWriter {
  const { starter, clock, log, batchPrefix, spinner, observer, timeouts = usualTimeouts } = parts;
  const { commitSource: source = { from: "writer" } } = parts;
  const onGap = (ts: number) => commits.gap(ts);
  if (source.from === "leader") return new SharedDatabaseWriter(source);
  if (source.from === "rows") {
    const { leader } = source;
    return new FollowingWriter({
      ...{ starter, clock, log, onGap },
      ...(leader && { leader }),
      onGroup(group) {
        commits.followed(group);
        inFlight.answer(group);
      },
    });
  }
  return new Writer({
    ...{ starter, clock, log, batchPrefix, onGap },
    timeoutMs: timeouts.mutationMs,
    logAppendMs: source.rows?.waitMs ?? 0,
    ...(spinner && { spinner }),
    ...(observer && { observer }),
    onGroup: (entries, ts) => commits.group(entries, ts),
  });
}

/** The answer of a query that was not run. Its narrow scope keeps it from other subscriptions. */
function refusedAnswer({ udfPath }: FunctionCall, ts: number): QueryAnswer {
  const outcome = refusedFor(udfPath);
  return { ts, outcome, readSet: unknownReads, scope: "session", nondeterministic: true, durationMs: 0 };
}
