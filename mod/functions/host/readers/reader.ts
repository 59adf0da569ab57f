/** One reader and the part of a wave it runs. */
import { functionLimits, isolateLimits } from "../../../limits.ts";
import { frameTextOfJson } from "../../wire/segment_frames.ts";
import type { Outcome } from "../../outcome.ts";
import type { Pinned, WaveAnswers } from "../../wire/messages.ts";
import { CallWatch } from "../call_watch.ts";
import type { HostClock } from "../clock.ts";
import type { Gate } from "../writer/gate.ts";
import type { Death, Isolate, IsolateFrame } from "../process/isolate.ts";
import { endedIsolate, fromWire, tookTooLong } from "../outcomes.ts";
import { type Part, singly, unansweredOf } from "./wave_run.ts";

/** A query that was running each of these many times when its reader was lost is taken for the cause. */
const RUNS_LOST_MAX = 3;

/** The part a reader has, from its assignment to its last answer or the reader's death. */
interface Work {
  readonly part: Part;
  readonly wave: number;
  /** `gate`: waits to be pinned. `sent`: opens its snapshot. Then the queries run. */
  phase: "gate" | "sent" | "running";
  /** The snapshot; 0 before it is open. */
  ts: number;
  /** Answers received, so the position of the next one. */
  received: number;
  watch: CallWatch;
  /** Whether the queries behind a slow one have been given to another reader. */
  takenOver: boolean;
  verdict: { readonly position: number; readonly outcome: Outcome } | null;
}

export interface ReaderOptions {
  readonly isolate: Isolate;
  readonly gate: Gate;
  readonly clock: HostClock;
  /** Called when the reader has become free. */
  readonly onFree: (reader: Reader) => void;
  /** Called once, when the isolate has ended, with what it leaves to be run again. */
  readonly onEnded: (reader: Reader, death: Death, left: readonly Part[]) => void;
}

export class Reader {
  readonly #options: ReaderOptions;
  #work: Work | null = null;
  #waves = 0;
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

  /** Runs a part as soon as the gate lets it. The reader must be free. */
  assign(part: Part): void {
    const { gate, clock, isolate } = this.#options;
    const work: Work = {
      part,
      wave: ++this.#waves,
      phase: "gate",
      ts: 0,
      received: 0,
      watch: new CallWatch(clock.now()),
      takenOver: false,
      verdict: null,
    };
    this.#work = work;
    gate.pin(() => {
      if (this.#work !== work) return gate.unpin();
      work.phase = "sent";
      work.watch = new CallWatch(clock.now());
      const queries = part.indices.map((index) => part.run.texts[index]).join(",");
      isolate.sendText(frameTextOfJson(`{"type":"RunWave","wave":${work.wave},"queries":[${queries}]}`));
    });
  }

  /** Takes back a part that waits at the gate. */
  takeBack(): Part | null {
    if (this.#work?.phase !== "gate") return null;
    const { part } = this.#work;
    this.#work = null;
    return part;
  }

  /**
   * Looks at the running query: ends the reader if it is over its time, and gives the queries behind a slow one, once,
   * for another reader to run. `slow` tells that the reader will not be free soon.
   */
  look(): { readonly slow: boolean; readonly behind: Part | null } {
    const work = this.#work;
    if (work === null || work.phase === "gate") return { slow: false, behind: null };
    const { isolate, clock } = this.#options;
    const { position, forMs } = work.watch.look(isolate.progress(), clock.now());
    const timeoutMs = position === null || work.phase === "sent"
      ? functionLimits.mutationTimeoutMs
      : functionLimits.queryTimeoutMs;
    if (forMs > timeoutMs) {
      if (position !== null && work.phase === "running") {
        work.verdict = { position, outcome: tookTooLong("query") };
      }
      isolate.kill();
      return { slow: false, behind: null };
    }
    if (forMs < isolateLimits.slowQueryMs) return { slow: false, behind: null };
    if (position === null || work.takenOver) return { slow: true, behind: null };
    work.takenOver = true;
    const { run, indices } = work.part;
    const behind = unansweredOf({ run, indices: indices.slice(position + 1), first: false });
    return { slow: true, behind };
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
    if (work?.wave !== wave || work.phase !== "sent") throw new RangeError(`Pinned ${wave} was not awaited`);
    work.phase = "running";
    work.ts = ts;
    work.part.run.partPinned(work.part, ts);
    this.#options.gate.unpin();
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
    answers.forEach(({ outcome, ...rest }, i) => {
      const index = work.part.indices[from + i] ?? 0;
      work.part.run.answer(index, { ...rest, outcome: fromWire(outcome, segments), ts: work.ts });
    });
    if (!last) return;
    this.#work = null;
    this.freeSince = this.#options.clock.now();
    this.#options.onFree(this);
  }

  #onEnded(death: Death): void {
    this.#dead = true;
    const work = this.#work;
    this.#work = null;
    if (work === null) return this.#options.onEnded(this, death, []);
    const running = work.phase === "running";
    const apart = running && this.#blame(work, death);
    if (work.phase === "sent") this.#options.gate.unpin();
    if (!running) work.part.run.partLost(work.part);
    const left = unansweredOf({ ...work.part, first: false });
    this.#options.onEnded(this, death, left === null ? [] : apart ? singly(left) : [left]);
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
