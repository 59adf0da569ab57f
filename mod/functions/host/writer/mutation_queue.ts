/** Mutations waiting for the writer, in turns of their callers and within bounds. */
import { isolateLimits } from "../../limits.ts";
import type { MutationAnswer, MutationCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { Costs } from "../costs.ts";
import { Turns } from "../turns.ts";

export interface PendingMutation {
  /** Its JSON text on the wire. */
  readonly text: string;
  /** What its text does not hold, and another server has to know. */
  readonly given: { readonly [Part in "caller" | "work"]: MutationCall[Part] | undefined };
  /** Whose turn it takes. */
  readonly caller: string;
  /** What it does, as far as its cost is concerned: the function. */
  readonly work: string;
  readonly queuedAt: number;
  readonly resolve: (answer: MutationAnswer) => void;
  /** Whether a failure that ends its run from outside is recorded, for when it is sent again. */
  readonly recordsFailure: boolean;
  /** That failure, once it is there: the call is with the writer for its record only, and its answer waits for that. */
  readonly failure: Outcome | null;
  /** Times its isolate was lost while it ran. The writer counts; past a bound it is to blame itself. */
  runsLost: number;
  /** Set when its caller was told that its fate is not known: it must not run again. */
  givenUp: boolean;
}

export class MutationQueue {
  readonly #costs: Costs;
  readonly #calls: Turns<PendingMutation>;
  #chars = 0;

  constructor(costs: Costs) {
    this.#costs = costs;
    this.#calls = new Turns({ callerOf: ({ caller }) => caller, costOf: (call) => this.#costOf(call) });
  }

  get size(): number {
    return this.#calls.size;
  }

  /**
   * Puts a call behind the others of its caller. Gives back the call that has to be refused because the queue is full:
   * this one, or the newest of a caller with far more. A call larger than the bound is let into an empty queue.
   */
  push(call: PendingMutation): PendingMutation | null {
    let refused: PendingMutation | null = null;
    const tooMany = this.size >= isolateLimits.queuedMutationsMax;
    if (
      tooMany || (this.size > 0 && this.#chars + call.text.length > isolateLimits.queuedMutationCharsMax)
    ) {
      refused = this.#calls.giveWay(call, ({ text }) => tooMany ? 1 : text.length);
      if (refused === null) return call;
      this.#chars -= refused.text.length;
    }
    this.#calls.push(call);
    this.#chars += call.text.length;
    return refused;
  }

  /**
   * Takes the next batch: at most `callsMax` calls, and at least one if there is one. It ends with a recorded failure, and
   * holds no more than takes about `batchSliceMs`: what is known to take longer goes alone.
   */
  take(callsMax: number): PendingMutation[] {
    const batch: PendingMutation[] = [];
    let chars = 0;
    let ms = 0;
    for (let next = this.#calls.peek(); next !== undefined; next = this.#calls.peek()) {
      const cost = this.#costOf(next);
      // The many that cost next to nothing are counted by the writer, as a mean.
      if (cost >= isolateLimits.costToldMs) ms += cost;
      const fits = batch.length < callsMax && chars + next.text.length <= isolateLimits.batchCharsMax &&
        ms <= isolateLimits.batchSliceMs;
      if (batch.length > 0 && !fits) break;
      this.#calls.take();
      batch.push(next);
      chars += next.text.length;
      // Its answer must not wait for calls behind it, which may fail like it.
      if (next.failure !== null) break;
    }
    this.#chars -= chars;
    return batch;
  }

  /** Puts calls that were taken back before the others of their callers, whatever the bounds: they were let in once. */
  putBack(calls: readonly PendingMutation[]): void {
    this.#calls.putBack(calls);
    for (const { text } of calls) this.#chars += text.length;
  }

  /** Takes out the calls that have waited since before `at`, or all. */
  takeOlder(at = Infinity): PendingMutation[] {
    const older = this.#calls.takeOut(({ queuedAt }) => queuedAt < at);
    for (const { text } of older) this.#chars -= text.length;
    return older;
  }

  /** Of one that is with the writer for its record alone no code of the app runs. */
  #costOf({ failure, work }: PendingMutation): number {
    return this.#costs.of(failure === null ? work : "");
  }
}
