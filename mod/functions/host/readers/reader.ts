/** One reader and the part of a wave it runs. */
import { functionLimits } from "../../../limits.ts";
import { isolateLimits } from "../../limits.ts";
import { frameTextOfJson } from "../../wire/segment_frames.ts";
import type { Outcome } from "../../outcome.ts";
import type { Pinned, WaveAnswers } from "../../wire/messages.ts";
import { CallWatch } from "../call_watch.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateFrame } from "../process/isolate.ts";
import { endedIsolate, fromWire, runUse, tookTooLong } from "../outcomes.ts";
import type { Agreement, Holder } from "./agreement.ts";
import type { Lateness } from "./lateness.ts";
import { SLOW_KNOWN_MS } from "./query_costs.ts";
import {
  joined,
  type Part,
  queriesText,
  type QueryWork,
  singly,
  unansweredOf,
  type WaveRun,
} from "./wave_run.ts";

/** A query that was running each of these many times when its reader was lost is taken for the cause. */
const RUNS_LOST_MAX = 3;
/** A reader that takes longer to open a snapshot is not waited for. */
const OPENING_MS_MAX = 5 * isolateLimits.slowQueryMs;

/** The part a reader has, from its assignment to its last answer or the reader's death. */
interface Work {
  /** Grows when the reader has to run what others of its wave had. */
  part: Part;
  readonly wave: number;
  /** `opening`: its snapshot. `waiting`: has it, others of the wave have not. Then the queries run. */
  phase: "opening" | "waiting" | "running";
  /** What the readers of its wave agree in, and its place there; `null` when it needs nobody, or has what it needs. */
  agreement: { readonly with: Agreement; readonly as: Holder } | null;
  /** The snapshot; 0 before it is open. */
  ts: number;
  /** Answers received, so the position of the next one. */
  received: number;
  /** How long the part waited for its snapshot, and what its answered queries took since. */
  waitedMs: number;
  watch: CallWatch;
  /** Whether the queries behind a slow one have been given to another reader. */
  takenOver: boolean;
  verdict: { readonly position: number; readonly outcome: Outcome } | null;
  /** Whether the reader is ended to make room: then nobody is to blame. */
  evicted: boolean;
  /** When it was last heard of, in milliseconds. */
  heardAt: number;
  /** How late main was in all when the query began that runs. */
  lateMs: number;
  /** What its queries cost, by the names under which that is remembered; `null` before somebody asked. */
  costs: ReadonlySet<string> | null;
}

/** Works begun by all readers, to tell which is the newest. */
let worksBegun = 0;

/** What {@linkcode Reader.look} sees. */
export interface Look {
  /** The reader will not be free soon. */
  readonly slow: boolean;
  /** The query that turns out to be slow, by its position in the wave, and for how long it has been running, as far as it could. */
  readonly found: { readonly index: number; readonly run: WaveRun; readonly forMs: number } | null;
  /** What is behind it, for another reader to run. */
  readonly behind: Part | null;
}

const NOT_SLOW: Look = { slow: false, found: null, behind: null };

/** A reader that has been given a part of a wave for several readers. */
export interface TogetherPart {
  readonly holder: Holder;
  /** To be called once all of them are known. */
  begin(agreement: Agreement): void;
}

export interface ReaderOptions {
  readonly isolate: Isolate;
  readonly clock: Clock;
  /** How long a query may run. */
  readonly timeoutMs: number;
  /** What is taken off from how long queries take. */
  readonly lateness: Pick<Lateness, "ms">;
  /** Told how long a query took. */
  readonly onRun: (work: QueryWork, ms: number) => void;
  /** Called when it has the snapshot for its work. */
  readonly onOpened: () => void;
  /** Called when the reader has become free. */
  readonly onFree: (reader: Reader) => void;
  /** Called once, when the isolate has ended, with what it leaves to be run again. */
  readonly onEnded: (reader: Reader, death: Death, left: readonly Part[]) => void;
}

export class Reader {
  readonly #options: ReaderOptions;
  #work: Work | null = null;
  #waves = 0;
  #workNumber = 0;
  /** Set once, by the isolate's end. */
  #dead = false;
  /** When it last became free. */
  freeSince: number;
  /** Set by the pool: it gets no more work and ends when it is free. */
  retired = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.freeSince = options.clock.now();
    options.isolate.receive((frame) => this.#onFrame(frame));
    options.isolate.ended.then((death) => this.#onEnded(death));
  }

  get free(): boolean {
    return this.#work === null && !this.#dead && !this.retired;
  }

  get busy(): boolean {
    return this.#work !== null;
  }

  /** Whether it will not be free soon: its work is slow, or was known to be. */
  get slow(): boolean {
    return this.#work !== null && (this.#work.takenOver || this.#work.part.slow === true);
  }

  /** For how long its work has gone on without a word, 0 when it has none. */
  get silentMs(): number {
    return this.#work === null ? 0 : this.#options.clock.now() - this.#work.heardAt;
  }

  /** Whether nothing is known of a query of its work. */
  get untried(): boolean {
    return this.#work !== null && this.#work.part.run.untried;
  }

  /** Whether its work has a query whose cost is remembered under this name. */
  worksOn(cost: string): boolean {
    const work = this.#work;
    if (work === null) return false;
    const { run, indices } = work.part;
    work.costs ??= new Set(indices.map((index) => run.works[index]?.cost ?? ""));
    return work.costs.has(cost);
  }

  /** Since when it has the work it has, as a count of works. */
  get workNumber(): number {
    return this.#workNumber;
  }

  /** Whether it has work and no snapshot for it yet. */
  get opening(): boolean {
    return this.#work !== null && this.#work.phase !== "running";
  }

  /** Runs a part. The reader must be free. */
  assign(part: Part): void {
    const work = this.#take(part);
    this.#send(`{"type":"RunWave","wave":${work.wave},"queries":[${queriesText(part)}]}`);
  }

  /** Opens a snapshot for a part, to run it when the agreement says so. The reader must be free. */
  assignTogether(part: Part): TogetherPart {
    const work = this.#take(part);
    const tell = (rest: string) => {
      if (this.#work === work) this.#send(`{"type":"WaveGo","wave":${work.wave},${rest}}`);
    };
    const holder: Holder = {
      again: () => {
        work.phase = "opening";
        work.watch = new CallWatch(this.#options.clock.now());
        tell('"what":"again"');
      },
      run: (more) => {
        const texts = more.map(queriesText).filter((text) => text !== "");
        tell(`"what":"run"${texts.length === 0 ? "" : `,"more":[${texts.join(",")}]`}`);
        work.part = joined(work.part, more);
        work.costs = null;
        this.#run(work);
      },
      drop: () => {
        tell('"what":"drop"');
        if (!work.takenOver) work.part.run.partLost(work.part);
        this.#freed(work);
        return work.part;
      },
    };
    return {
      holder,
      begin: (agreement) => {
        work.agreement = { with: agreement, as: holder };
        this.#send(
          `{"type":"RunWave","wave":${work.wave},"together":true,"queries":[${queriesText(part)}]}`,
        );
      },
    };
  }

  #take(part: Part): Work {
    this.#workNumber = ++worksBegun;
    const now = this.#options.clock.now();
    return this.#work = {
      part,
      wave: ++this.#waves,
      phase: "opening",
      agreement: null,
      ts: 0,
      received: 0,
      waitedMs: 0,
      watch: new CallWatch(now),
      takenOver: false,
      verdict: null,
      evicted: false,
      heardAt: now,
      lateMs: this.#options.lateness.ms,
      costs: null,
    };
  }

  #send(json: string): void {
    this.#options.isolate.sendText(frameTextOfJson(json));
  }

  /**
   * Looks at the running query: ends the reader if it is over its time, and gives the queries behind a slow one, once,
   * for another reader to run. `slow` tells that the reader will not be free soon.
   */
  look(): Look {
    const work = this.#work;
    if (work === null || work.phase === "waiting") return NOT_SLOW;
    const { isolate, clock } = this.#options;
    const { position, forMs } = work.watch.look(isolate.progress(), clock.now());
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
      // Something an earlier call left behind keeps it from its work: all of it is for another reader.
      work.takenOver = true;
      run.partLost(work.part);
      work.agreement?.with.without(work.agreement.as);
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

  /** Ends it to make room for others; what it has runs again elsewhere. */
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
      case "WaveAnswers":
        return this.#onAnswers(message, segments);
      default:
        throw new TypeError(`A reader does not send ${message.type}`);
    }
  }

  #onPinned({ wave, ts }: Pinned): void {
    const work = this.#work;
    if (work?.wave !== wave || work.phase !== "opening") {
      throw new RangeError(`Pinned ${wave} was not awaited`);
    }
    work.ts = ts;
    const { agreement } = work;
    if (agreement === null) return this.#run(work);
    work.phase = "waiting";
    // Others run it by now.
    if (work.takenOver) agreement.as.drop();
    else agreement.with.pinned(agreement.as, ts);
  }

  #run(work: Work): void {
    const now = this.#options.clock.now();
    work.phase = "running";
    work.agreement = null;
    work.waitedMs = now - work.part.run.startedAt;
    work.watch = new CallWatch(now);
    work.heardAt = now;
    // One that took too long to open is not waited for any more.
    if (!work.takenOver) work.part.run.partPinned(work.part, work.ts);
    this.#options.onOpened();
  }

  #freed(work: Work): void {
    if (this.#work !== work) return;
    this.#work = null;
    this.freeSince = this.#options.clock.now();
    this.#options.onFree(this);
  }

  #onAnswers({ wave, from, answers, last }: WaveAnswers, segments: readonly string[]): void {
    const work = this.#work;
    const end = from + answers.length;
    const count = work?.part.indices.length ?? 0;
    const awaited = work?.wave === wave && work.phase === "running" && from === work.received && end <= count;
    if (work === null || !awaited || last !== (end === count)) {
      throw new RangeError(`Answers ${wave}/${from} were not awaited`);
    }
    work.received = end;
    if (!last) work.heardAt = this.#options.clock.now();
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
      const outcome = fromWire(wire, segments);
      const queuedMs = work.waitedMs;
      work.waitedMs += rest.durationMs;
      work.part.run.answer(index, {
        ...rest,
        outcome,
        ts: work.ts,
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
    const apart = running && !work.evicted && this.#blame(work, death);
    work.agreement?.with.without(work.agreement.as);
    if (!running && !work.takenOver) work.part.run.partLost(work.part);
    const left = unansweredOf({ ...work.part, first: false, ...(work.evicted ? { slow: true } : {}) });
    this.#options.onEnded(this, death, left === null ? [] : apart || work.evicted ? singly(left) : [left]);
  }

  /**
   * Answers the query that brought the reader down, if that is clear. When the answers themselves were nonsense it may be any
   * of those without one, and counts against all of them: returns whether they are to run apart now, so that the one which
   * is the cause loses its last reader alone.
   */
  #blame({ part, verdict, received, ts }: Work, death: Death): boolean {
    const position = verdict?.position ?? death.progress?.position ?? -1;
    // What the progress file tells of an earlier query has been answered since.
    const found = position >= received && position < part.indices.length;
    let apart = false;
    for (const [at, index] of part.indices.entries()) {
      if (found ? at !== position : part.run.has(index)) continue;
      const lost = part.run.runLost(index);
      const caused = found && death.cause === "crashed" || lost >= RUNS_LOST_MAX;
      const outcome = verdict?.outcome ?? (caused ? endedIsolate("query", death.detail) : null);
      if (outcome !== null) part.run.cutShort(index, { outcome, ts });
      else apart ||= !found && lost === RUNS_LOST_MAX - 1;
    }
    return apart;
  }
}
