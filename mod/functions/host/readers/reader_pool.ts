/** The pool of readers: assigns parts of query batches to readers, and detects slow queries. */
import type { Log } from "../../../kit/log.ts";
import { isolateLimits } from "../../limits.ts";
import type {
  FunctionCall,
  QueryAnswer,
  QueryBatchOptions,
  QueryBatchRun,
  QueryCall,
  QueryReaders,
} from "../../host_port.ts";
import { failed, type Outcome } from "../../outcome.ts";
import { isSystemPath } from "../../system_module.ts";
import { SnapshotCoordination } from "./snapshot_coordination.ts";
import { ReadBarrier } from "./read_barrier.ts";
import { SchedulingDelay } from "./scheduling_delay.ts";
import { QueryCosts } from "./query_costs.ts";
import { BusyShare } from "../busy_share.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateStarter } from "../process/isolate.ts";
import { queryText, stopping } from "../outcomes.ts";
import { Reader, type WatchResult } from "./reader.ts";
import { ReaderProcesses } from "./reader_processes.ts";
import { distribute, type Part, QueryBatch, type QueryWork } from "./query_batch.ts";
import { WaitingParts } from "./waiting_parts.ts";

/** A batch uses one reader per this many queries: small batches are not worth several snapshots. */
const QUERIES_PER_READER = 16;
/** Share of a second without a free reader above which another one is started. */
const BUSY_SHARE_MAX = 0.75;

function costKey({ udfPath, caller }: Pick<FunctionCall, "udfPath" | "caller">): string {
  return `${caller?.blame ?? ""} ${udfPath}`;
}

/** Splits off queries known to be slow, each into a part of its own. */
function singlyIfSlow({ indices, ...part }: Part, costs: QueryCosts): Part[] {
  const isSlow = (index: number) => {
    const work = part.run.works[index];
    return work !== undefined && costs.isSlow(work);
  };
  const quick = indices.filter((index) => !isSlow(index));
  const slow = indices.filter(isSlow).map((index): Part => ({ ...part, indices: [index], slow: true }));
  return quick.length === 0 ? slow : [{ ...part, indices: quick }, ...slow];
}

export interface ReaderPoolOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
  /** Processors available to readers. */
  readonly cores: number;
  readonly readersMax: number;
  /** Main's newest ts. */
  readonly ts: () => number;
  /** Returns the hash of the served version. */
  readonly version?: () => string | null;
  /** Time limit of a query. */
  readonly timeoutMs: number;
  /** Whether the function exists. Costs of others are not tracked, because clients may request any path. */
  readonly isKnown: (udfPath: string) => boolean;
  /** Whether to keep a spare reader while queries of the app arrive. */
  readonly spare?: boolean;
}

export class ReaderPool implements QueryReaders {
  readonly #options: ReaderPoolOptions;
  readonly #readers: ReaderProcesses;
  readonly #listeners: (() => void)[] = [];
  readonly #busyShare: BusyShare;
  readonly #barrier: ReadBarrier;
  readonly #waiting = new WaitingParts();
  readonly #costs = new QueryCosts();
  readonly #lateness: SchedulingDelay;
  /** Paused while new code is loaded. */
  #held = false;
  /** Called when every busy reader has its snapshot. Set while the pool is paused. */
  #onOpened: (() => void) | null = null;
  #closing = false;
  /** Set while a reader has work. */
  #watchTimer: Timer | null = null;

  constructor(options: ReaderPoolOptions) {
    this.#options = options;
    this.#busyShare = new BusyShare(options.clock.now());
    this.#lateness = new SchedulingDelay(() => options.clock.now());
    this.#barrier = new ReadBarrier(options.clock, options.ts());
    const { starter, clock, log, readersMax, spare = false } = options;
    this.#readers = new ReaderProcesses({
      ...{ starter, clock, log, readersMax, spare },
      create: (isolate) => this.#createReader(isolate),
      onChanged: () => this.#changed(),
      onFailed: (message) => this.#answerOld(message),
    });
  }

  /** Whether a batch can start: a reader is free, or the batch makes the first one start. */
  get free(): boolean {
    return !this.#waiting.hasQuick && !this.#held && (this.#readers.hasFree || this.#readers.size === 0);
  }

  prepare(): void {
    if (!this.#held) this.#readers.prepare();
  }

  /** Records that commits up to `ts` were published, which releases answers. */
  published(ts: number): void {
    this.#barrier.published(ts);
  }

  onFree(listener: () => void): void {
    this.#listeners.push(listener);
  }

  startBatch(
    queries: readonly QueryCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
    { slow = false }: QueryBatchOptions = {},
  ): QueryBatchRun {
    const ts = this.#options.ts();
    if (queries.length === 0) return { pinned: Promise.resolve(ts), done: Promise.resolve() };
    const startedAt = this.#options.clock.now();
    this.#readers.noteQueries({ ofApp: queries.some(({ udfPath }) => !isSystemPath(udfPath)) });
    const arrived = (ts: number, deliver: () => void) => this.#barrier.arrived(ts, deliver);
    const works = queries.map((query): QueryWork => {
      const { udfPath, caller, base } = query;
      const cost = costKey(query);
      const untried = !this.#costs.isQuick({ cost });
      return { cost, path: udfPath, queueKey: caller?.queueKey ?? "", untried, caller, base };
    });
    const run = new QueryBatch({ texts: queries.map(queryText), works, onAnswer, startedAt, arrived });
    const free = this.#closing || this.#held || slow ? [] : [...this.#readers].filter(({ free }) => free);
    const parts = Math.max(1, Math.min(free.length, Math.ceil(queries.length / QUERIES_PER_READER)));
    run.dealt(parts);
    const dealt = distribute(run, parts).map((part) => slow ? { ...part, slow } : part);
    if (parts > 1) startCoordinated(free, dealt.splice(0, parts));
    this.#waiting.push(dealt);
    this.#dispatch();
    return run;
  }

  /** Whether a query is known to be slow, or one in flight may prove slow. */
  get hasSlowQueries(): boolean {
    if (!this.#costs.empty) return true;
    for (const reader of this.#readers) {
      if (reader.untried || reader.silentMs >= isolateLimits.suspectQueryMs) return true;
    }
    return false;
  }

  /** Whether a query counts as slow: it is known to be, or one of this function and caller is still running. */
  isSlow(query: Pick<FunctionCall, "udfPath" | "caller">): boolean {
    const cost = costKey(query);
    if (this.#costs.isSlow({ cost, path: query.udfPath })) return true;
    const silentMs = this.#costs.isQuick({ cost }) ? isolateLimits.suspectQueryMs : 0;
    for (const reader of this.#readers) {
      if (reader.busy && reader.silentMs >= silentMs && reader.worksOn(cost)) return true;
    }
    return false;
  }

  /** Whether slow work can start now. Starts a reader for it if the limit allows. */
  slowFree(): boolean {
    if (this.#held || this.#closing || this.#waiting.hasSlow) return false;
    if (this.#slowTaker() !== null) return true;
    // Possibly slow queries are not worth an additional process.
    this.#makeRoom(this.#costs.empty ? 1 : 2);
    return false;
  }

  /** Returns a free reader for slow work if another fast one remains. */
  #slowTaker(): Reader | null {
    const quick = [...this.#readers].filter((reader) =>
      !reader.slow && !reader.draining && reader.silentMs < isolateLimits.suspectQueryMs &&
      !(reader.busy && reader.untried)
    );
    return quick.length < 2 ? null : quick.find(({ free }) => free) ?? null;
  }

  /** Ensures that one reader is not slow, or two if there is slow work to run. */
  #makeRoom(wanted = this.#waiting.hasSlow ? 2 : 1): void {
    const quick = [...this.#readers].filter(({ slow, draining }) => !slow && !draining);
    if (quick.length < wanted) this.#readers.add();
    if (quick.length > 0 || this.#readers.size < this.#options.readersMax) return;
    // All are slow: the newest slow work has to wait.
    const [newest] = [...this.#readers].filter(({ slow, draining }) => slow && !draining)
      .sort((a, b) => b.workNumber - a.workNumber);
    newest?.evict();
  }

  /** Pauses the pool until {@linkcode release}. Resolves when busy readers have their snapshots. */
  hold(): Promise<void> {
    this.#held = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onOpened = resolve;
    this.#noteOpened();
    return promise;
  }

  /** Resumes after {@linkcode hold}. */
  release(): void {
    this.#held = false;
    this.#onOpened = null;
    this.#changed();
  }

  /** Assigns later queries to readers with new code, and resumes. Running queries finish with the old code. */
  replace(): void {
    this.#readers.replace();
    this.release();
  }

  /** Ends all readers and answers their work with an error. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#watchTimer?.cancel();
    await this.#readers.close();
    this.#answerAll(this.#waiting.takeAll(), stopping());
    this.#barrier.close();
  }

  #createReader(isolate: Isolate): Reader {
    const { clock, timeoutMs } = this.#options;
    return new Reader({
      ...{ isolate, clock, timeoutMs },
      version: this.#options.version?.() ?? null,
      lateness: this.#lateness,
      onRun: (work, ms) => {
        if (this.#options.isKnown(work.path)) this.#costs.took(work, ms);
      },
      onOpened: () => this.#noteOpened(),
      onFree: (reader) => {
        this.#readers.onFree(reader);
        this.#changed();
      },
      onEnded: (reader, death, left) => this.#onEnded(reader, death, left),
    });
  }

  /** Assigns waiting parts, and notifies listeners if a reader is still free. */
  #changed(): void {
    this.#dispatch();
    if (!this.free) return;
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#options.log("error", "A listener for free readers failed", { error });
      }
    }
  }

  #dispatch(): void {
    if (this.#held) {
      // A run that never ends must not block the caller of `hold`.
      if (this.#readers.some(({ busy }) => busy)) this.#watchLater();
      return;
    }
    if (this.#closing) return this.#answerAll(this.#waiting.takeAll(), stopping());
    for (const reader of this.#readers) {
      if (!this.#waiting.hasQuick) break;
      if (!reader.free) continue;
      const part = this.#waiting.takeQuick();
      if (part !== null) reader.assign(part);
    }
    this.#dispatchSlow();
    this.#noteBusy();
    if (this.#waiting.hasQuick && !this.#readers.hasCurrent) this.#readers.add();
    if (this.#readers.some(({ busy }) => busy)) this.#watchLater();
  }

  #dispatchSlow(): void {
    while (this.#waiting.hasSlow) {
      const reader = this.#slowTaker();
      if (reader === null) return this.#makeRoom();
      const part = this.#waiting.takeSlow();
      if (part !== null) reader.assign(part);
    }
  }

  #noteBusy(): void {
    const { clock, cores } = this.#options;
    const busy = this.#readers.size > 0 && (this.#waiting.hasQuick || !this.#readers.hasFree);
    const share = this.#busyShare.note(busy, clock.now());
    if (share !== null && share > BUSY_SHARE_MAX && this.#readers.size < cores) this.#readers.add();
  }

  #onEnded(reader: Reader, death: Death, left: readonly Part[]): void {
    const known = this.#readers.remove(reader);
    if (known && death.cause !== "asked") {
      this.#options.log("warn", "A reader ended", { cause: death.cause, detail: death.detail });
    }
    this.#waiting.requeue(left);
    this.#noteOpened();
    this.#changed();
  }

  /** Answers parts that have waited too long for a reader. The rest waits for the next attempt to start one. */
  #answerOld(message: string): void {
    const old = this.#waiting.takeOlder(this.#options.clock.now() - isolateLimits.startMs);
    this.#answerAll(old, failed("internal", `The app cannot be started: ${message}`));
  }

  #answerAll(parts: readonly Part[], outcome: Outcome): void {
    for (const { run, indices } of parts) {
      for (const index of indices) run.cutShort(index, { outcome, ts: this.#options.ts() });
    }
  }

  #noteOpened(): void {
    if (!this.#readers.some(({ opening }) => opening)) this.#onOpened?.();
  }

  #watchLater(): void {
    const { clock } = this.#options;
    const ms = Math.min(isolateLimits.watchIntervalMs, isolateLimits.slowQueryMs / 2);
    if (this.#watchTimer !== null) return;
    this.#lateness.timerSet(ms);
    this.#watchTimer = clock.after(ms, () => {
      this.#watchTimer = null;
      this.#lateness.timerFired();
      this.#watch();
    });
  }

  #watch(): void {
    let slow = false;
    for (const reader of this.#readers) {
      const result = reader.check();
      slow ||= result.slow;
      if (result.found !== null) this.#foundSlow(result.found);
      if (result.behind !== null) this.#waiting.requeue(singlyIfSlow(result.behind, this.#costs));
    }
    // Keeps a free reader beside a slow one.
    if (slow && !this.#readers.hasFree) this.#readers.add();
    if (slow) this.#makeRoom();
    this.#dispatch();
  }

  #foundSlow({ run, index, forMs }: NonNullable<WatchResult["found"]>): void {
    this.#readers.noteSlow();
    const work = run.works[index];
    if (work !== undefined) this.#costs.takes(work, forMs);
  }
}

/** Starts snapshot coordination for readers of one batch. */
function startCoordinated(readers: readonly Reader[], parts: readonly Part[]): void {
  const started = parts.flatMap((part, i) => readers[i]?.assignCoordinated(part) ?? []);
  const coordination = new SnapshotCoordination(started.map(({ holder }) => holder));
  for (const { begin } of started) begin(coordination);
}
