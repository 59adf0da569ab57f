/** Parts of query batches without a reader: slow ones in a fair queue, others in order of arrival. */
import { isolateLimits } from "../../limits.ts";
import { FairQueue } from "../fair_queue.ts";
import { type Part, unansweredOf } from "./query_batch.ts";

export class WaitingParts {
  #quick: Part[] = [];
  readonly #slow = new FairQueue<Part>({
    callerOf: ({ run, indices: [index = 0] }) => run.works[index]?.turn ?? "",
    costOf: () => isolateLimits.slowQueryMs,
  });

  get hasQuick(): boolean {
    return this.#quick.length > 0;
  }

  get hasSlow(): boolean {
    return this.#slow.size > 0;
  }

  push(parts: readonly Part[]): void {
    for (const part of parts) {
      if (part.slow === true) this.#slow.push(part);
      else this.#quick.push(part);
    }
  }

  /** Puts leftovers of lost or slow readers first. */
  requeue(parts: readonly Part[]): void {
    this.#quick.unshift(...parts.filter(({ slow }) => !slow));
    this.#slow.requeue(parts.filter(({ slow }) => slow));
  }

  /** Takes the next part that is not slow; `null` if it has been answered in the meantime. */
  takeQuick(): Part | null {
    const part = this.#quick.shift();
    return part === undefined ? null : unansweredOf(part);
  }

  takeSlow(): Part | null {
    const part = this.#slow.take();
    return part === undefined ? null : unansweredOf(part);
  }

  /** Takes the parts that are not slow and belong to batches from before this time. */
  takeOlder(than: number): readonly Part[] {
    const older = this.#quick.filter(({ run }) => run.startedAt < than);
    this.#quick = this.#quick.filter(({ run }) => run.startedAt >= than);
    return older;
  }

  takeAll(): readonly Part[] {
    return [...this.#quick.splice(0), ...this.#slow.takeOut(() => true)];
  }
}
