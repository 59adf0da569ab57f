/** The readers: one from the start, more when they are busy or slow, fewer when they have nothing to do. */
import type { Log } from "../../../kit/log.ts";
import { isolateLimits } from "../../limits.ts";
import type { FunctionCall, QueryAnswer, QueryBatchOptions, QueryBatchRun } from "../../host_port.ts";
import { failed, type Outcome } from "../../outcome.ts";
import { Agreement } from "./agreement.ts";
import { Arrivals } from "./arrivals.ts";
import { Lateness } from "./lateness.ts";
import { QueryCosts } from "./query_costs.ts";
import { Turns } from "../turns.ts";
import { BusyShare } from "../busy_share.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateStarter } from "../process/isolate.ts";
import { callText, stopping } from "../outcomes.ts";
import { type Look, Reader } from "./reader.ts";
import { Restarts } from "../process/restarts.ts";
import { deal, type Part, type QueryWork, unansweredOf, WaveRun } from "./wave_run.ts";

/** A wave takes one reader more for each of these many queries: a small one is not worth several snapshots. */
const QUERIES_PER_READER = 16;
/** Share of a second without a free reader above which another one is started. */
const BUSY_SHARE_MAX = 0.75;

/** A reader more than needed stands by for so long after a query was slow, or asked at all. */
const SPARE_KEPT_MS = 600_000;

/** What a query takes is remembered of a function and whoever answers for the call. */
function costKey({ udfPath, caller }: Pick<FunctionCall, "udfPath" | "caller">): string {
  return `${caller?.blame ?? ""} ${udfPath}`;
}

/** What is known to be slow apart, one by one; the rest as it is. */
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
  /** Processors that readers can keep busy. */
  readonly cores: number;
  /** Readers running at once. */
  readonly readersMax: number;
  /** Main's newest ts. */
  readonly ts: () => number;
  /** How long a query may run. */
  readonly timeoutMs: number;
  /** Whether there is such a function: of others nothing is noted, as clients may ask for any. */
  readonly isKnown: (udfPath: string) => boolean;
  /** Whether a second reader stands by while queries are asked. */
  readonly spare?: boolean;
}

export class ReaderPool {
  readonly #options: ReaderPoolOptions;
  readonly #readers = new Set<Reader>();
  readonly #listeners: (() => void)[] = [];
  readonly #restarts = new Restarts();
  readonly #busyShare: BusyShare;
  readonly #arrivals: Arrivals;
  /** Parts no reader has yet: a wave begun without a free reader, and what lost or slow readers left. */
  #waiting: Part[] = [];
  /** Parts that are known to be slow, behind what was found to be. */
  readonly #slowWaiting = new Turns<Part>({
    callerOf: ({ run, indices: [index = 0] }) => run.works[index]?.turn ?? "",
    costOf: () => isolateLimits.slowQueryMs,
  });
  /** What queries of callers take. */
  readonly #costs = new QueryCosts();
  readonly #lateness: Lateness;
  /** When a query was last found to be slow, and when one was last asked. */
  #slowFoundAt = -Infinity;
  #askedAt = -Infinity;
  /** Readers being started. */
  #starting = 0;
  /** Advanced by `replace`: readers started before it have other code. */
  #generation = 0;
  /** Starts in a row that failed. */
  #failures = 0;
  /** While new code is loaded nothing is handed to the readers that have the old. */
  #held = false;
  /** Runs queries elsewhere, for good; set by `passOn`. */
  #passTo: ((call: FunctionCall) => Promise<Outcome>) | null = null;
  /** Called when every reader with work has its snapshot; set while the pool is held. */
  #onOpened: (() => void) | null = null;
  #closing = false;
  /** Exists while a reader has work. */
  #watchTimer: Timer | null = null;
  /** Exists while there are more readers than one. */
  #idleTimer: Timer | null = null;
  /** Exists while a failed start waits to be tried again. */
  #retryTimer: Timer | null = null;
  /** Exists for a while after a query that found no second reader. */
  #spareTimer: Timer | null = null;

  constructor(options: ReaderPoolOptions) {
    this.#options = options;
    this.#busyShare = new BusyShare(options.clock.now());
    this.#lateness = new Lateness(() => options.clock.now());
    this.#arrivals = new Arrivals(options.clock, options.ts());
  }

  /** Starts the first reader. Throws when that fails. */
  async start(): Promise<void> {
    const started = await this.#options.starter.start("reader");
    if (!started.ok) throw new Error(started.message);
    this.#add(started.isolate);
  }

  /** Whether a reader would take a wave at once. */
  get free(): boolean {
    if (this.#passTo !== null) return true;
    return this.#waiting.length === 0 && !this.#held && [...this.#readers].some(({ free }) => free);
  }

  /** Everybody has been told of the commits up to `ts`: answers that show them may be told too. */
  heard(ts: number): void {
    this.#arrivals.heard(ts);
  }

  onFree(listener: () => void): void {
    this.#listeners.push(listener);
  }

  startWave(
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
    const run = new WaveRun({ texts: queries.map(callText), works, onAnswer, startedAt, arrived });
    const free = this.#closing || this.#held || slow || this.#passTo !== null
      ? []
      : [...this.#readers].filter(({ free }) => free);
    const parts = Math.max(1, Math.min(free.length, Math.ceil(queries.length / QUERIES_PER_READER)));
    run.dealt(parts);
    const dealt = deal(run, parts).map((part) => slow ? { ...part, slow } : part);
    if (parts > 1) startTogether(free, dealt.splice(0, parts));
    if (slow) { for (const part of dealt) this.#slowWaiting.push(part); }
    else this.#waiting.push(...dealt);
    this.#dispatch();
    return run;
  }

  /** Whether any query is known to be slow, or one is under way that may turn out to be. */
  get slowKnown(): boolean {
    if (!this.#costs.empty) return true;
    for (const reader of this.#readers) {
      if (reader.untried || reader.silentMs >= isolateLimits.suspectQueryMs) return true;
    }
    return false;
  }

  /**
   * Whether a query of this caller is known to be slow, or to be treated so: while one of the same function is under way for
   * him that has been running for a moment, or of which nothing is known yet. Of that one reader at a time is enough.
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

  /** Whether slow work would be taken at once; brings a reader for it, if there may be one more. */
  slowFree(): boolean {
    if (this.#passTo !== null) return true;
    if (this.#held || this.#closing || this.#slowWaiting.size > 0) return false;
    if (this.#slowTaker() !== null) return true;
    // What may turn out to be slow is worth no process of its own.
    this.#makeRoom(this.#costs.empty ? 1 : 2);
    return false;
  }

  /** A free reader for slow work: another one that is quick is to be left. */
  #slowTaker(): Reader | null {
    const quick = [...this.#readers].filter((reader) =>
      !reader.slow && !reader.retired && reader.silentMs < isolateLimits.suspectQueryMs &&
      !(reader.busy && reader.untried)
    );
    return quick.length < 2 ? null : quick.find(({ free }) => free) ?? null;
  }

  /** Sees to it that there is a reader which is not slow; two if there is slow work for one of them. */
  #makeRoom(wanted = this.#slowWaiting.size > 0 ? 2 : 1): void {
    const quick = [...this.#readers].filter(({ slow, retired }) => !slow && !retired);
    if (quick.length < wanted) this.#startOne();
    if (quick.length > 0 || this.#readers.size < this.#options.readersMax) return;
    // All of them are at work that takes long: the newest of it has to wait.
    const [newest] = [...this.#readers].filter(({ slow, retired }) => slow && !retired)
      .sort((a, b) => b.workNumber - a.workNumber);
    newest?.evict();
  }

  /** Hands nothing to the readers until {@linkcode release}. Resolves when those with work have their snapshots. */
  hold(): Promise<void> {
    this.#held = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onOpened = resolve;
    this.#noteOpened();
    return promise;
  }

  /** Goes on after {@linkcode hold}. */
  release(): void {
    this.#held = false;
    this.#onOpened = null;
    this.#changed();
  }

  /** Those that wait, and all that are still to come, are run elsewhere. Answers never reject. */
  passOn(to: (call: FunctionCall) => Promise<Outcome>): void {
    this.#passTo = to;
    this.#changed();
  }

  /**
   * Starts a reader with new code and ends the others as they become free. Nothing is handed to readers meanwhile. Gives
   * the reason when it cannot be started; the old ones are gone then too, and new ones are tried.
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

  /** Ends all readers; what they had is answered with an error. */
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

  /** Hands out what waits, and tells the listeners when a reader is free after it. */
  #changed(): void {
    this.#dispatch();
    if (!this.free) return;
    for (const listener of this.#listeners) listener();
  }

  #dispatch(): void {
    if (this.#passTo !== null && !this.#closing) return this.#passAll(this.#passTo);
    if (this.#held) {
      // A run that never ends must not keep whoever holds the pool waiting for it.
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

  #passAll(to: (call: FunctionCall) => Promise<Outcome>): void {
    for (const { run, indices } of [...this.#waiting.splice(0), ...this.#slowWaiting.takeOut(() => true)]) {
      for (const index of indices) {
        if (run.has(index)) continue;
        const caller = run.works[index]?.caller;
        const call = JSON.parse(run.texts[index] ?? "") as FunctionCall;
        to({ ...call, ...(caller && { caller }) })
          .then((outcome) => run.cutShort(index, { outcome, ts: this.#options.ts() }));
      }
    }
    // Those that run have to end in time all the same.
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

  /** One start at a time, after a pause if readers die often or cannot be started. */
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
        // It has loaded the code before the present one.
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

  /** Parts that have waited too long are answered; the rest wait for the next try. */
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

  /** Gives the reader no more work; ends it now if it has none. */
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
    // Others must not wait for it: there is to be a free reader beside a slow one.
    if (slow && ![...this.#readers].some(({ free }) => free)) this.#startOne();
    if (slow) this.#makeRoom();
    this.#dispatch();
  }

  #foundSlow({ run, index, forMs }: NonNullable<Look["found"]>): void {
    this.#slowFoundAt = this.#options.clock.now();
    const work = run.works[index];
    if (work !== undefined) this.#costs.takes(work, forMs);
  }

  /** Parts that have to be run by another reader. */
  #takeBack(parts: readonly Part[]): void {
    this.#waiting.unshift(...parts.filter(({ slow }) => !slow));
    this.#slowWaiting.putBack(parts.filter(({ slow }) => slow));
  }

  /** Readers that stay when they have nothing to do: one more where queries were slow, or are asked, a short time ago. */
  get #kept(): number {
    const since = this.#options.clock.now() - SPARE_KEPT_MS;
    return this.#slowFoundAt > since || (this.#options.spare === true && this.#askedAt > since) ? 2 : 1;
  }

  /** Brings a second reader for what turns out to be slow: one that starts then comes late for those who wait behind it. */
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

/** Brings readers to one snapshot and has each run its part there. */
function startTogether(readers: readonly Reader[], parts: readonly Part[]): void {
  const started = parts.flatMap((part, i) => readers[i]?.assignTogether(part) ?? []);
  const agreement = new Agreement(started.map(({ holder }) => holder));
  for (const { begin } of started) begin(agreement);
}
