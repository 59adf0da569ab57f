/** Mutations waiting for the writer, in arrival order and within bounds. */
import { isolateLimits } from "../../limits.ts";
import type { MutationAnswer } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";

export interface PendingMutation {
  /** Its JSON text on the wire. */
  readonly text: string;
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
  #calls: PendingMutation[] = [];
  /** Calls of `#calls` that have left already: moved together now and then instead of with each call. */
  #taken = 0;
  #chars = 0;

  get size(): number {
    return this.#calls.length - this.#taken;
  }

  /** Appends a call; `false` when the queue is full. A call larger than the bound is let into an empty queue. */
  push(call: PendingMutation): boolean {
    const full = this.size >= isolateLimits.queuedMutationsMax ||
      (this.size > 0 && this.#chars + call.text.length > isolateLimits.queuedMutationCharsMax);
    if (full) return false;
    this.#calls.push(call);
    this.#chars += call.text.length;
    return true;
  }

  /** Takes the next batch: at most `callsMax` calls, and at least one if there is one. It ends with a recorded failure. */
  take(callsMax: number): PendingMutation[] {
    const batch: PendingMutation[] = [];
    let chars = 0;
    for (let next = this.#calls[this.#taken]; next !== undefined; next = this.#calls[this.#taken]) {
      const fits = batch.length < callsMax && chars + next.text.length <= isolateLimits.batchCharsMax;
      if (batch.length > 0 && !fits) break;
      batch.push(next);
      chars += next.text.length;
      this.#taken++;
      // Its answer must not wait for calls behind it, which may fail like it.
      if (next.failure !== null) break;
    }
    this.#chars -= chars;
    this.#compact();
    return batch;
  }

  /** Puts calls that were taken back in front, whatever the bounds: they were let in once. */
  putBack(calls: readonly PendingMutation[]): void {
    this.#calls = [...calls, ...this.#calls.slice(this.#taken)];
    this.#taken = 0;
    for (const { text } of calls) this.#chars += text.length;
  }

  /** Takes out the calls that have waited since before `at`, or all. */
  takeOlder(at = Infinity): PendingMutation[] {
    const waiting = this.#calls.slice(this.#taken);
    const older = waiting.filter(({ queuedAt }) => queuedAt < at);
    this.#calls = waiting.filter(({ queuedAt }) => queuedAt >= at);
    this.#taken = 0;
    for (const { text } of older) this.#chars -= text.length;
    return older;
  }

  #compact(): void {
    if (this.#taken === this.#calls.length) this.#calls = [];
    else if (this.#taken > 4096) this.#calls = this.#calls.slice(this.#taken);
    else return;
    this.#taken = 0;
  }
}
