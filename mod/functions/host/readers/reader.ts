/** One reader and its part of a query batch. */
import { functionLimits } from "../../../limits.ts";
import { isolateLimits } from "../../limits.ts";
import { frameTextOfJson } from "../../wire/segment_frames.ts";
import type { Outcome } from "../../outcome.ts";
import type { Pinned, QueryBatchAnswers } from "../../wire/messages.ts";
import { CallWatch } from "../call_watch.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateFrame } from "../process/isolate.ts";
import { endedIsolate, fromWire, runUse, tookTooLong } from "../outcomes.ts";
import type { SnapshotCoordination, SnapshotHolder } from "./snapshot_coordination.ts";
import type { SchedulingDelay } from "./scheduling_delay.ts";
import { SLOW_KNOWN_MS } from "./query_costs.ts";
import {
  joined,
  type Part,
  queriesText,
  type QueryBatch,
  type QueryWork,
  splitByQuery,
  unansweredOf,
} from "./query_batch.ts";

/** A query that was running this often when its reader was lost counts as the cause. */
const RUNS_LOST_MAX = 3;
/** Other readers do not wait for one that opens its snapshot later than this. */
const OPENING_MS_MAX = 5 * isolateLimits.slowQueryMs;

/** A reader's part, from assignment to the last answer or the reader's death. */
interface Work {
  /** Grows if the reader has to run the parts of others. */
  part: Part;
  readonly batch: number;
  /** `opening`: opens its snapshot. `waiting`: other readers have not. `running`: runs the queries. */
  phase: "opening" | "waiting" | "running";
  /** Snapshot coordination with the other readers. `null` if not needed or complete. */
  coordination: { readonly with: SnapshotCoordination; readonly as: SnapshotHolder } | null;
  /** The snapshot. 0 before it is open. */
  ts: number;
  /** Answers received, and thus the position of the next one. */
  received: number;
  /** Time until the part had its snapshot, plus the duration of answered queries. */
  waitedMs: number;
  watch: CallWatch;
  /** Whether the queries behind a slow one were moved to another reader. */
  takenOver: boolean;
  verdict: { readonly position: number; readonly outcome: Outcome } | null;
  /** Whether the reader was ended to free a slot. Then no query is at fault. */
  evicted: boolean;
  /** When the last message arrived, in milliseconds. */
  lastMessageAt: number;
  /** Total scheduling delay of main when the current query started. */
  lateMs: number;
  /** Cost keys of its queries. `null` until requested. */
  costs: ReadonlySet<string> | null;
}

/** Number of parts started by all readers. Determines the newest. */
let worksBegun = 0;

/** Result of {@linkcode Reader.check}. */
export interface WatchResult {
  readonly slow: boolean;
  /** The query that proves slow, by position in the batch, with its running time corrected for delays. */
  readonly found: { readonly index: number; readonly run: QueryBatch; readonly forMs: number } | null;
  readonly behind: Part | null;
}

const NOT_SLOW: WatchResult = { slow: false, found: null, behind: null };

/** A reader that was assigned a part of a batch for several readers. */
export interface CoordinatedPart {
  readonly holder: SnapshotHolder;
  /** Call when all of them are known. */
  begin(coordination: SnapshotCoordination): void;
}

export interface ReaderOptions {
  readonly isolate: Isolate;
  readonly clock: Clock;
  /** Hash of the version that the isolate loaded. */
  readonly version: string | null;
  /** Time limit of a query. */
  readonly timeoutMs: number;
  /** Delays to subtract from durations. */
  readonly lateness: Pick<SchedulingDelay, "ms">;
  readonly onRun: (work: QueryWork, ms: number) => void;
  /** Called when it runs a part, or is free because it opened its snapshot too late. */
  readonly onOpened: () => void;
  readonly onFree: (reader: Reader) => void;
  /** Called once when the isolate has ended, with the queries to run again. */
  readonly onEnded: (reader: Reader, death: Death, left: readonly Part[]) => void;
}

export class Reader {
  readonly #options: ReaderOptions;
  #work: Work | null = null;
  #batches = 0;
  #workNumber = 0;
  /** Set when the isolate ends. */
  #dead = false;
  /** When it last became free. */
  freeSince: number;
  /** Set by the pool: it receives no more work and ends when it is free. */
  draining = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.freeSince = options.clock.now();
    options.isolate.receive((frame) => this.#onFrame(frame));
    options.isolate.ended.then((death) => this.#onEnded(death));
  }

  get free(): boolean {
    return this.#work === null && !this.#dead && !this.draining;
  }

  get busy(): boolean {
    return this.#work !== null;
  }

  /** Whether it will be busy for a while: its work proved slow or was known to be. */
  get slow(): boolean {
    return this.#work !== null && (this.#work.takenOver || this.#work.part.slow === true);
  }

  /** Time since its last message. 0 when idle. */
  get silentMs(): number {
    return this.#work === null ? 0 : this.#options.clock.now() - this.#work.lastMessageAt;
  }

  /** Whether its work includes a query of unknown cost. */
  get untried(): boolean {
    return this.#work !== null && this.#work.part.run.untried;
  }

  /** Whether its work includes a query with this cost key. */
  worksOn(cost: string): boolean {
    const work = this.#work;
    if (work === null) return false;
    const { run, indices } = work.part;
    work.costs ??= new Set(indices.map((index) => run.works[index]?.cost ?? ""));
    return work.costs.has(cost);
  }

  get workNumber(): number {
    return this.#workNumber;
  }

  /** Whether it has work but no snapshot yet. */
  get opening(): boolean {
    return this.#work !== null && this.#work.phase !== "running";
  }

  /** Runs a part. The reader must be free. */
  assign(part: Part): void {
    const work = this.#take(part);
    this.#send(`{"type":"RunQueryBatch","batch":${work.batch},"queries":[${queriesText(part)}]}`);
  }

  /** Opens a snapshot for a part, to run it once the readers have coordinated. The reader must be free. */
  assignCoordinated(part: Part): CoordinatedPart {
    const work = this.#take(part);
    const send = (rest: string) => {
      if (this.#work === work) this.#send(`{"type":"QueryBatchGo","batch":${work.batch},${rest}}`);
    };
    const holder: SnapshotHolder = {
      again: () => {
        work.phase = "opening";
        work.watch = new CallWatch(this.#options.clock.now());
        send('"what":"again"');
      },
      run: (more) => {
        const texts = more.map(queriesText).filter((text) => text !== "");
        send(`"what":"run"${texts.length === 0 ? "" : `,"more":[${texts.join(",")}]`}`);
        work.part = joined(work.part, more);
        work.costs = null;
        this.#run(work);
      },
      drop: () => {
        send('"what":"drop"');
        if (!work.takenOver) work.part.run.partLost(work.part);
        this.#freed(work);
        return work.part;
      },
    };
    return {
      holder,
      begin: (coordination) => {
        work.coordination = { with: coordination, as: holder };
        this.#send(
          `{"type":"RunQueryBatch","batch":${work.batch},"together":true,"queries":[${queriesText(part)}]}`,
        );
      },
    };
  }

  #take(part: Part): Work {
    this.#workNumber = ++worksBegun;
    const now = this.#options.clock.now();
    return this.#work = {
      part,
      batch: ++this.#batches,
      phase: "opening",
      coordination: null,
      ts: 0,
      received: 0,
      waitedMs: 0,
      watch: new CallWatch(now),
      takenOver: false,
      verdict: null,
      evicted: false,
      lastMessageAt: now,
      lateMs: this.#options.lateness.ms,
      costs: null,
    };
  }

  #send(json: string): void {
    this.#options.isolate.sendText(frameTextOfJson(json));
  }

  /** Checks the running query. Ends the reader on a timeout, and returns the queries behind a slow query once. */
  check(): WatchResult {
    const work = this.#work;
    if (work === null || work.phase === "waiting") return NOT_SLOW;
    const { isolate, clock } = this.#options;
    const { position, forMs } = work.watch.update(isolate.progress(), clock.now());
    if (forMs === 0) work.lateMs = this.#options.lateness.ms;
    const timeoutMs = position === null || work.phase === "opening"
      ? functionLimits.mutationTimeoutMs
      : this.#options.timeoutMs;
    if (forMs > timeoutMs) {
      if (position !== null && work.phase === "running") {
        work.verdict = { position, outcome: tookTooLong("query", timeoutMs) };
      }
      isolate.kill();
      return NOT_SLOW;
    }
    const opening = work.phase === "opening";
    if (forMs < (opening ? OPENING_MS_MAX : isolateLimits.slowQueryMs)) return NOT_SLOW;
    const { run, indices } = work.part;
    const found = opening || position === null
      ? null
      : { index: indices[position] ?? 0, run, forMs: forMs - this.#lateFor(work) };
    if (work.takenOver) return { slow: true, found, behind: null };
    if (opening) {
      // An earlier call's leftovers block it: another reader runs the whole part.
      work.takenOver = true;
      run.partLost(work.part);
      work.coordination?.with.without(work.coordination.as);
      return { slow: true, found: null, behind: unansweredOf({ run, indices, first: false }) };
    }
    if (position === null) return { slow: true, found, behind: null };
    work.takenOver = true;
    const behind = unansweredOf({ run, indices: indices.slice(position + 1), first: false });
    return { slow: true, found, behind };
  }

  #lateFor({ lateMs }: Work): number {
    return this.#options.lateness.ms - lateMs;
  }

  /** Ends it to free a slot. Its queries run again elsewhere. */
  evict(): void {
    if (this.#work !== null) this.#work.evicted = true;
    this.#options.isolate.kill();
  }

  async close(): Promise<void> {
    await this.#options.isolate.close();
  }

  kill(): void {
    this.#options.isolate.kill();
  }

  #onFrame({ message, segments }: IsolateFrame): void {
    switch (message.type) {
      case "Pinned":
        return this.#onPinned(message);
      case "QueryBatchAnswers":
        return this.#onAnswers(message, segments);
      default:
        throw new TypeError(`A reader does not send ${message.type}`);
    }
  }

  #onPinned({ batch, ts }: Pinned): void {
    const work = this.#work;
    if (work?.batch !== batch || work.phase !== "opening") {
      throw new RangeError(`Pinned ${batch} was not awaited`);
    }
    work.ts = ts;
    const { coordination } = work;
    if (coordination === null) return this.#run(work);
    work.phase = "waiting";
    if (!work.takenOver) return coordination.with.pinned(coordination.as, ts);
    // Other readers have taken over.
    coordination.as.drop();
    this.#options.onOpened();
  }

  #run(work: Work): void {
    const now = this.#options.clock.now();
    work.phase = "running";
    work.coordination = null;
    work.waitedMs = now - work.part.run.startedAt;
    work.watch = new CallWatch(now);
    work.lastMessageAt = now;
    // If it opened too late, no one waits for it any more.
    if (!work.takenOver) work.part.run.partPinned(work.part, work.ts);
    this.#options.onOpened();
  }

  #freed(work: Work): void {
    if (this.#work !== work) return;
    this.#work = null;
    this.freeSince = this.#options.clock.now();
    this.#options.onFree(this);
  }

  #onAnswers({ batch, from, answers, last }: QueryBatchAnswers, segments: readonly string[]): void {
    const work = this.#work;
    const end = from + answers.length;
    const count = work?.part.indices.length ?? 0;
    const awaited = work?.batch === batch && work.phase === "running" && from === work.received &&
      end <= count;
    if (work === null || !awaited || last !== (end === count)) {
      throw new RangeError(`Answers ${batch}/${from} were not awaited`);
    }
    work.received = end;
    if (!last) work.lastMessageAt = this.#options.clock.now();
    answers.forEach(({ outcome: wire, use, ...rest }, i) => {
      const index = work.part.indices[from + i] ?? 0;
      const counted = work.part.run.works[index];
      const { durationMs } = rest;
      if (counted !== undefined) {
        this.#options.onRun(
          counted,
          durationMs < SLOW_KNOWN_MS ? durationMs : durationMs - this.#lateFor(work),
        );
      }
      const outcome = fromWire(wire, segments, counted?.base ?? null);
      const queuedMs = work.waitedMs;
      work.waitedMs += rest.durationMs;
      work.part.run.answer(index, {
        ...rest,
        outcome,
        ts: work.ts,
        version: this.#options.version,
        queuedMs,
        ...(use && { use: runUse(use) }),
      });
    });
    if (last) this.#freed(work);
  }

  #onEnded(death: Death): void {
    this.#dead = true;
    const work = this.#work;
    this.#work = null;
    if (work === null) return this.#options.onEnded(this, death, []);
    const running = work.phase === "running";
    const oneByOne = running && !work.evicted && this.#blame(work, death);
    work.coordination?.with.without(work.coordination.as);
    if (!running && !work.takenOver) work.part.run.partLost(work.part);
    const left = unansweredOf({ ...work.part, first: false, ...(work.evicted ? { slow: true } : {}) });
    this.#options.onEnded(
      this,
      death,
      left === null ? [] : oneByOne || work.evicted ? splitByQuery(left) : [left],
    );
  }

  /** Answers the query that ended the reader. Returns whether the queries have to run one by one to find it. */
  #blame({ part, verdict, received, ts }: Work, death: Death): boolean {
    const position = verdict?.position ?? death.progress?.position ?? -1;
    // Progress of an earlier query is outdated: it was answered since.
    const found = position >= received && position < part.indices.length;
    let oneByOne = false;
    for (const [at, index] of part.indices.entries()) {
      if (found ? at !== position : part.run.has(index)) continue;
      const lost = part.run.runLost(index);
      const caused = found && death.cause === "crashed" || lost >= RUNS_LOST_MAX;
      const outcome = verdict?.outcome ?? (caused ? endedIsolate("query", death.detail) : null);
      if (outcome !== null) part.run.cutShort(index, { outcome, ts, version: this.#options.version });
      else oneByOne ||= !found && lost === RUNS_LOST_MAX - 1;
    }
    return oneByOne;
  }
}
