/** Parts of query batches without a reader: slow ones in a fair queue, others in order of arrival. */
import { isolateLimits } from "../../limits.ts";
import { FairQueue } from "../fair_queue.ts";
import { type Part, unansweredOf } from "./query_batch.ts";

export class WaitingParts {
  #quick: Part[] = [];
  readonly #slow = new FairQueue<Part>({
    callerOf: ({ run, indices: [index = 0] }) => run.works[index]?.queueKey ?? "",
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

  /** Takes the parts of batches from before this time. */
  takeOlder(than: number): readonly Part[] {
    const isOlder = ({ run }: Part) => run.startedAt < than;
    const older = this.#quick.filter(isOlder);
    this.#quick = this.#quick.filter((part) => !isOlder(part));
    return [...older, ...this.#slow.takeOut(isOlder)];
  }

  takeAll(): readonly Part[] {
    return [...this.#quick.splice(0), ...this.#slow.takeOut(() => true)];
  }
}
