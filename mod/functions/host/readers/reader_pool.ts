/** The pool of readers: one from the start, more under load, fewer when idle. */
import type { Log } from "../../../kit/log.ts";
import { isolateLimits } from "../../limits.ts";
import type { FunctionCall, QueryAnswer, QueryBatchOptions, QueryBatchRun } from "../../host_port.ts";
import { failed, type Outcome } from "../../outcome.ts";
import { SnapshotCoordination } from "./snapshot_coordination.ts";
import { ReadBarrier } from "./read_barrier.ts";
import { SchedulingDelay } from "./scheduling_delay.ts";
import { QueryCosts } from "./query_costs.ts";
import { FairQueue } from "../fair_queue.ts";
import { BusyShare } from "../busy_share.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateStarter } from "../process/isolate.ts";
import { callText, stopping } from "../outcomes.ts";
import { type Look, Reader } from "./reader.ts";
import { Restarts } from "../process/restarts.ts";
import { deal, type Part, QueryBatch, type QueryWork, unansweredOf } from "./query_batch.ts";

/** A batch uses one reader per this many queries: small batches are not worth several snapshots. */
const QUERIES_PER_READER = 16;
/** Share of a second without a free reader above which another one is started. */
const BUSY_SHARE_MAX = 0.75;

/** How long an additional reader is kept after a slow query, or any query. */
const SPARE_KEPT_MS = 600_000;

/** Costs are tracked per function and caller. */
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
  /** Maximum readers. */
  readonly readersMax: number;
  /** Main's newest ts. */
  readonly ts: () => number;
  /** Time limit of a query. */
  readonly timeoutMs: number;
  /** Whether the function exists. Costs of others are not tracked, because clients may request any path. */
  readonly isKnown: (udfPath: string) => boolean;
  /** Whether to keep a spare reader while queries arrive. */
  readonly spare?: boolean;
}

export class ReaderPool {
  readonly #options: ReaderPoolOptions;
  readonly #readers = new Set<Reader>();
  readonly #listeners: (() => void)[] = [];
  readonly #restarts = new Restarts();
  readonly #busyShare: BusyShare;
  readonly #arrivals: ReadBarrier;
  /** Parts without a reader: batches started while none was free, and leftovers of lost or slow readers. */
  #waiting: Part[] = [];
  /** Parts known to be slow. They run after those found to be slow. */
  readonly #slowWaiting = new FairQueue<Part>({
    callerOf: ({ run, indices: [index = 0] }) => run.works[index]?.turn ?? "",
    costOf: () => isolateLimits.slowQueryMs,
  });
  readonly #costs = new QueryCosts();
  readonly #lateness: SchedulingDelay;
  /** When a query was last found to be slow, and when one last arrived. */
  #slowFoundAt = -Infinity;
  #askedAt = -Infinity;
  /** Readers that are starting. */
  #starting = 0;
  /** Increased by `replace`: older readers have other code. */
  #generation = 0;
  /** Consecutive failed starts. */
  #failures = 0;
  /** Paused while new code is loaded. */
  #held = false;
  /** Called when every busy reader has its snapshot. Set while the pool is paused. */
  #onOpened: (() => void) | null = null;
  #closing = false;
  /** Set while a reader has work. */
  #watchTimer: Timer | null = null;
  /** Set while there is more than one reader. */
  #idleTimer: Timer | null = null;
  /** Set while a retry of a failed start is pending. */
  #retryTimer: Timer | null = null;
  /** Set for a while after a query that found no spare reader. */
  #spareTimer: Timer | null = null;

  constructor(options: ReaderPoolOptions) {
    this.#options = options;
    this.#busyShare = new BusyShare(options.clock.now());
    this.#lateness = new SchedulingDelay(() => options.clock.now());
    this.#arrivals = new ReadBarrier(options.clock, options.ts());
  }

  /** Starts the first reader. Throws if that fails. */
  async start(): Promise<void> {
    const started = await this.#options.starter.start("reader");
    if (!started.ok) throw new Error(started.message);
    this.#add(started.isolate);
  }

  /** Whether a reader is free for a batch. */
  get free(): boolean {
    return this.#waiting.length === 0 && !this.#held && [...this.#readers].some(({ free }) => free);
  }

  /** Records that commits up to `ts` were published, which releases answers. */
  heard(ts: number): void {
    this.#arrivals.heard(ts);
  }

  onFree(listener: () => void): void {
    this.#listeners.push(listener);
  }

  startBatch(
    queries: readonly FunctionCall[],
    onAnswer: (index: number, answer: QueryAnswer) => void,
    { slow = false }: QueryBatchOptions = {},
  ): QueryBatchRun {
    const ts = this.#options.ts();
    if (queries.length === 0) return { pinned: Promise.resolve(ts), done: Promise.resolve() };
    const startedAt = this.#options.clock.now();
    this.#askedAt = startedAt;
    this.#spareLater();
    const arrived = (ts: number, deliver: () => void) => this.#arrivals.arrived(ts, deliver);
    const works = queries.map((query): QueryWork => {
      const { udfPath, caller } = query;
      const cost = costKey(query);
      const untried = !this.#costs.isQuick({ cost });
      return { cost, path: udfPath, turn: caller?.turn ?? "", untried, caller };
    });
    const run = new QueryBatch({ texts: queries.map(callText), works, onAnswer, startedAt, arrived });
    const free = this.#closing || this.#held || slow ? [] : [...this.#readers].filter(({ free }) => free);
    const parts = Math.max(1, Math.min(free.length, Math.ceil(queries.length / QUERIES_PER_READER)));
    run.dealt(parts);
    const dealt = deal(run, parts).map((part) => slow ? { ...part, slow } : part);
    if (parts > 1) startTogether(free, dealt.splice(0, parts));
    if (slow) { for (const part of dealt) this.#slowWaiting.push(part); }
    else this.#waiting.push(...dealt);
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

  /**
   * Whether a query of this caller counts as slow: it is known to be, or one of the same function and caller has been running
   * for a moment or has unknown cost. Such queries get one reader at a time.
   */
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
    if (this.#held || this.#closing || this.#slowWaiting.size > 0) return false;
    if (this.#slowTaker() !== null) return true;
    // Possibly slow queries are not worth an additional process.
    this.#makeRoom(this.#costs.empty ? 1 : 2);
    return false;
  }

  /** Returns a free reader for slow work if another fast one remains. */
  #slowTaker(): Reader | null {
    const quick = [...this.#readers].filter((reader) =>
      !reader.slow && !reader.retired && reader.silentMs < isolateLimits.suspectQueryMs &&
      !(reader.busy && reader.untried)
    );
    return quick.length < 2 ? null : quick.find(({ free }) => free) ?? null;
  }

  /** Ensures that one reader is not slow, or two if there is slow work to run. */
  #makeRoom(wanted = this.#slowWaiting.size > 0 ? 2 : 1): void {
    const quick = [...this.#readers].filter(({ slow, retired }) => !slow && !retired);
    if (quick.length < wanted) this.#startOne();
    if (quick.length > 0 || this.#readers.size < this.#options.readersMax) return;
    // All are slow: the newest slow work has to wait.
    const [newest] = [...this.#readers].filter(({ slow, retired }) => slow && !retired)
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

  /**
   * Starts a reader with new code and ends the others as they become free. The pool is paused in the meantime. Returns an error
   * message if the start fails. The old readers are gone then too, and starts are retried.
   */
  async replace(): Promise<void> {
    this.#held = true;
    this.#generation++;
    const old = [...this.#readers];
    const started = await this.#options.starter.start("reader");
    for (const reader of old) this.#retire(reader);
    this.#held = false;
    if (started.ok) this.#add(started.isolate);
    else this.#startFailed(started.message);
    this.#changed();
  }

  /** Ends all readers and answers their work with an error. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of [this.#watchTimer, this.#idleTimer, this.#retryTimer, this.#spareTimer]) {
      timer?.cancel();
    }
    await Promise.all([...this.#readers].map((reader) => {
      reader.kill();
      return reader.close();
    }));
    this.#answerAll([...this.#waiting.splice(0), ...this.#slowWaiting.takeOut(() => true)], stopping());
    this.#arrivals.close();
  }

  #add(isolate: Isolate): void {
    if (this.#closing) {
      isolate.kill();
      return;
    }
    const { clock } = this.#options;
    this.#readers.add(
      new Reader({
        isolate,
        clock,
        timeoutMs: this.#options.timeoutMs,
        lateness: this.#lateness,
        onRun: (work, ms) => {
          if (this.#options.isKnown(work.path)) this.#costs.took(work, ms);
        },
        onOpened: () => this.#noteOpened(),
        onFree: (reader) => this.#onFree(reader),
        onEnded: (reader, death, left) => this.#onEnded(reader, death, left),
      }),
    );
    this.#idleLater();
  }

  /** Assigns waiting parts, and notifies listeners if a reader is still free. */
  #changed(): void {
    this.#dispatch();
    if (!this.free) return;
    for (const listener of this.#listeners) listener();
  }

  #dispatch(): void {
    if (this.#held) {
      // A run that never ends must not block the caller of `hold`.
      if ([...this.#readers].some(({ busy }) => busy)) this.#watchLater();
      return;
    }
    if (this.#closing) {
      return this.#answerAll(
        [...this.#waiting.splice(0), ...this.#slowWaiting.takeOut(() => true)],
        stopping(),
      );
    }
    for (const reader of this.#readers) {
      if (this.#waiting.length === 0) break;
      if (!reader.free) continue;
      const part = this.#waiting.shift();
      const left = part === undefined ? null : unansweredOf(part);
      if (left !== null) reader.assign(left);
    }
    this.#dispatchSlow();
    this.#noteBusy();
    if (this.#readers.size === 0) this.#startOne();
    if ([...this.#readers].some(({ busy }) => busy)) this.#watchLater();
  }

  #dispatchSlow(): void {
    while (this.#slowWaiting.size > 0) {
      const reader = this.#slowTaker();
      if (reader === null) return this.#makeRoom();
      const part = this.#slowWaiting.take();
      const left = part === undefined ? null : unansweredOf(part);
      if (left !== null) reader.assign(left);
    }
  }

  #noteBusy(): void {
    const { clock, cores } = this.#options;
    const busy = this.#waiting.length > 0 || ![...this.#readers].some(({ free }) => free);
    const share = this.#busyShare.note(busy, clock.now());
    if (share !== null && share > BUSY_SHARE_MAX && this.#readers.size < cores) this.#startOne();
  }

  #onFree(reader: Reader): void {
    if (reader.retired) this.#end(reader);
    this.#changed();
  }

  #onEnded(reader: Reader, death: Death, left: readonly Part[]): void {
    const known = this.#readers.delete(reader);
    if (known && death.cause !== "asked") {
      this.#options.log("warn", "A reader ended", { cause: death.cause, detail: death.detail });
    }
    this.#takeBack(left);
    this.#noteOpened();
    this.#changed();
  }

  /** Starts one reader at a time, delayed after frequent deaths or failed starts. */
  #startOne(): void {
    const { clock, starter } = this.#options;
    if (this.#starting > 0 || this.#closing || this.#retryTimer !== null) return;
    if (this.#readers.size >= this.#options.readersMax) return;
    const pauseMs = this.#restarts.pauseMs(clock.now(), this.#failures);
    const start = async () => {
      this.#retryTimer = null;
      this.#starting++;
      const generation = this.#generation;
      const started = await starter.start("reader");
      this.#starting--;
      if (started.ok && generation !== this.#generation) {
        // Code was replaced while it was starting.
        started.isolate.kill();
      } else if (started.ok) {
        this.#failures = 0;
        this.#add(started.isolate);
      } else this.#startFailed(started.message);
      this.#changed();
    };
    if (pauseMs === 0) start();
    else this.#retryTimer = clock.after(pauseMs, start);
  }

  /** Answers parts that have waited too long. The rest waits for the next attempt. */
  #startFailed(message: string): void {
    const { clock, log } = this.#options;
    this.#failures++;
    log("error", "Cannot start a reader", { message });
    if (this.#readers.size > 0) return;
    const since = clock.now() - isolateLimits.startMs;
    const old = this.#waiting.filter(({ run }) => run.startedAt < since);
    this.#waiting = this.#waiting.filter(({ run }) => run.startedAt >= since);
    this.#answerAll(old, failed("internal", `The app cannot be started: ${message}`));
  }

  #answerAll(parts: readonly Part[], outcome: Outcome): void {
    for (const { run, indices } of parts) {
      for (const index of indices) run.cutShort(index, { outcome, ts: this.#options.ts() });
    }
  }

  #noteOpened(): void {
    if (![...this.#readers].some(({ opening }) => opening)) this.#onOpened?.();
  }

  /** Stops assigning work to the reader. Ends it when it is free. */
  #retire(reader: Reader): void {
    reader.retired = true;
    if (!reader.busy) this.#end(reader);
  }

  #end(reader: Reader): void {
    this.#readers.delete(reader);
    reader.close();
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
      const look = reader.look();
      slow ||= look.slow;
      if (look.found !== null) this.#foundSlow(look.found);
      if (look.behind !== null) this.#takeBack(singlyIfSlow(look.behind, this.#costs));
    }
    // Keeps a free reader beside a slow one.
    if (slow && ![...this.#readers].some(({ free }) => free)) this.#startOne();
    if (slow) this.#makeRoom();
    this.#dispatch();
  }

  #foundSlow({ run, index, forMs }: NonNullable<Look["found"]>): void {
    this.#slowFoundAt = this.#options.clock.now();
    const work = run.works[index];
    if (work !== undefined) this.#costs.takes(work, forMs);
  }

  /** Queues parts that have to run in another reader. */
  #takeBack(parts: readonly Part[]): void {
    this.#waiting.unshift(...parts.filter(({ slow }) => !slow));
    this.#slowWaiting.putBack(parts.filter(({ slow }) => slow));
  }

  /** Readers kept while idle: one more if queries were slow, or arrived, recently. */
  get #kept(): number {
    const since = this.#options.clock.now() - SPARE_KEPT_MS;
    return this.#slowFoundAt > since || (this.#options.spare === true && this.#askedAt > since) ? 2 : 1;
  }

  /** Starts a second reader before a slow query delays those behind it. */
  #spareLater(): void {
    const { clock, spare = false } = this.#options;
    if (!spare || this.#closing || this.#spareTimer !== null || this.#readers.size > 1) return;
    this.#spareTimer = clock.after(isolateLimits.spareReaderMs, () => {
      this.#spareTimer = null;
      if (this.#readers.size < 2) this.#startOne();
    });
  }

  #idleLater(): void {
    if (this.#readers.size <= 1) return;
    this.#idleTimer ??= this.#options.clock.after(isolateLimits.readerIdleMs, () => {
      this.#idleTimer = null;
      const now = this.#options.clock.now();
      const since = now - isolateLimits.readerIdleMs;
      for (const reader of this.#readers) {
        if (this.#readers.size > this.#kept && reader.free && reader.freeSince <= since) this.#retire(reader);
      }
      this.#idleLater();
    });
  }
}

/** Starts snapshot coordination for readers of one batch. */
function startTogether(readers: readonly Reader[], parts: readonly Part[]): void {
  const started = parts.flatMap((part, i) => readers[i]?.assignTogether(part) ?? []);
  const agreement = new SnapshotCoordination(started.map(({ holder }) => holder));
  for (const { begin } of started) begin(agreement);
}
