/** Mutations waiting for the writer, in a bounded fair queue. */
import { isolateLimits } from "../../limits.ts";
import type { MutationAnswer } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { Costs } from "../costs.ts";
import { FairQueue } from "../fair_queue.ts";

export interface PendingMutation {
  /** Serialized call. */
  readonly text: string;
  readonly caller: string;
  /** Cost key: the function. */
  readonly work: string;
  readonly queuedAt: number;
  readonly resolve: (answer: MutationAnswer) => void;
  /** Whether an external failure of its run is recorded, for resent copies. */
  readonly recordsFailure: boolean;
  /** That failure, once it occurred: the call is sent only to record it, and its answer waits for that. */
  readonly failure: Outcome | null;
  /** Times its isolate was lost while it ran. Counted by the writer. Above a limit it is at fault. */
  runsLost: number;
  /** Set when its caller received an unknown outcome: it must not run again. */
  abandoned: boolean;
}

export class MutationQueue {
  readonly #costs: Costs;
  readonly #calls: FairQueue<PendingMutation>;
  #chars = 0;

  constructor(costs: Costs) {
    this.#costs = costs;
    this.#calls = new FairQueue({ callerOf: ({ caller }) => caller, costOf: (call) => this.#costOf(call) });
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Queues a call. Returns the call to reject if the queue is full: this one, or the newest of a far heavier caller. */
  push(call: PendingMutation): PendingMutation | null {
    let refused: PendingMutation | null = null;
    const tooMany = this.size >= isolateLimits.queuedMutationsMax;
    if (
      tooMany || (this.size > 0 && this.#chars + call.text.length > isolateLimits.queuedMutationCharsMax)
    ) {
      refused = this.#calls.evictFor(call, ({ text }) => tooMany ? 1 : text.length);
      if (refused === null) return call;
      this.#chars -= refused.text.length;
    }
    this.#calls.push(call);
    this.#chars += call.text.length;
    return refused;
  }

  /** Takes one to `callsMax` calls, ending with a recorded failure, of about `batchSliceMs`. Long calls run alone. */
  take(callsMax: number): PendingMutation[] {
    const batch: PendingMutation[] = [];
    let chars = 0;
    let ms = 0;
    for (let next = this.#calls.peek(); next !== undefined; next = this.#calls.peek()) {
      const cost = this.#costOf(next);
      // Cheap calls are estimated by the writer, as a mean.
      if (cost >= isolateLimits.costMinMs) ms += cost;
      const fits = batch.length < callsMax && chars + next.text.length <= isolateLimits.batchCharsMax &&
        ms <= isolateLimits.batchSliceMs;
      if (batch.length > 0 && !fits) break;
      this.#calls.take();
      batch.push(next);
      chars += next.text.length;
      // Its answer must not wait for later calls, which may fail as well.
      if (next.failure !== null) break;
    }
    this.#chars -= chars;
    return batch;
  }

  /** Returns calls to the front of their callers' queues, regardless of limits: they were accepted before. */
  requeue(calls: readonly PendingMutation[]): void {
    this.#calls.requeue(calls);
    for (const { text } of calls) this.#chars += text.length;
  }

  /** Removes the calls that have waited since before `at`, or all. */
  takeOlder(at = Infinity): PendingMutation[] {
    const older = this.#calls.takeOut(({ queuedAt }) => queuedAt < at);
    for (const { text } of older) this.#chars -= text.length;
    return older;
  }

  /** No app code runs for a call that is sent only to record its failure. */
  #costOf({ failure, work }: PendingMutation): number {
    return this.#costs.of(failure === null ? work : "");
  }
}
