/** The batch in the writer and the one sent while it commits. They survive the loss of the writer. */
import { parseFrameText } from "../../wire/segment_frames.ts";
import type { Group } from "../../wire/messages.ts";
import type { Death } from "../process/isolate.ts";
import { MutationBatch } from "./mutation_batch.ts";
import type { PendingMutation } from "./mutation_queue.ts";

/** Outcomes after a loss of the writer. */
export interface Settled {
  /** Calls to run again, in order. */
  readonly again: readonly PendingMutation[];
  /** The call that caused the loss, if it is answered now. */
  readonly blamed: ReturnType<MutationBatch["afterLoss"]>["blamed"];
}

/** How the recovery reports what it finds. */
export interface Recovery {
  /** Publishes a committed group of the current batch and answers its calls. */
  readonly publish: (group: Group, segments: readonly string[]) => void;
  /** Called with calls that were committed and whose answers are lost. */
  readonly onLostAnswers: (calls: readonly PendingMutation[]) => void;
  /** Called with the calls of unknown outcome if the newest group cannot be read. */
  readonly onUnreadable: (error: unknown, calls: readonly PendingMutation[]) => void;
}

export class BatchesInFlight {
  readonly #prefix: string;
  #count = 0;
  #current: MutationBatch | null = null;
  /** Sent while the last group of `#current` is being committed, to become the current one. */
  #ahead: MutationBatch | null = null;
  /** How the writer of the current batch was lost, until its replacement reports the outcome. */
  #loss: Death | null = null;

  /** The prefix makes batch names unique over the life of the database. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  get current(): MutationBatch | null {
    return this.#current;
  }

  /** Calls that were sent and not answered, in order. */
  get unanswered(): readonly PendingMutation[] {
    return [...this.#current?.unanswered ?? [], ...this.#ahead?.unanswered ?? []];
  }

  create(calls: readonly PendingMutation[]): MutationBatch {
    return new MutationBatch(`${this.#prefix}-${++this.#count}`, calls);
  }

  begin(batch: MutationBatch, now: number): void {
    batch.begin(now);
    this.#current = batch;
  }

  /** @throws RangeError if the writer cannot be committing this batch. */
  checkCommitting(batch: string): MutationBatch {
    if (this.#current?.id !== batch || this.#ahead !== null) {
      throw new RangeError(`No commit of ${batch} was awaited`);
    }
    return this.#current;
  }

  sentAhead(batch: MutationBatch | null): void {
    this.#ahead = batch;
  }

  /** Ends the current batch. Returns the one that was sent ahead. */
  end(): MutationBatch | null {
    const next = this.#ahead;
    this.#current = this.#ahead = null;
    return next;
  }

  lost(death: Death): void {
    this.#loss = death;
  }

  /**
   * Determines the outcome of a lost writer's batches from the newest group that its replacement found in the database. Returns
   * `null` if none were lost.
   */
  settle(lastGroup: string | null, recovery: Recovery): Settled | null {
    const [current, loss] = [this.#current, this.#loss];
    this.#loss = null;
    if (current === null || loss === null) return null;
    const { again, blamed } = this.#afterLastGroup(current, { lastGroup, recovery }).afterLoss(loss);
    const behind = (this.#ahead?.unanswered ?? []).filter(({ abandoned }) => !abandoned);
    this.#current = this.#ahead = null;
    return { again: [...again, ...behind], blamed };
  }

  /** Publishes the newest group if that was not done. Returns the batch in flight. */
  #afterLastGroup(
    out: MutationBatch,
    { lastGroup, recovery }: { readonly lastGroup: string | null; readonly recovery: Recovery },
  ): MutationBatch {
    if (lastGroup === null) return out;
    const ahead = this.#ahead;
    let current = out;
    const answerLost = (calls: readonly PendingMutation[]) => {
      if (calls.length > 0) recovery.onLostAnswers(calls);
    };
    try {
      const { message: group, segments } = parseFrameText<Group>(lastGroup);
      if (ahead !== null && group.batch === ahead.id) {
        // It was started, so everything before it has ended.
        answerLost(out.skipTo(Infinity));
        this.#current = current = ahead;
        this.#ahead = null;
      }
      if (group.batch !== current.id) return current;
      if (!Number.isSafeInteger(group.from) || group.from < 0 || !(group.answers.length > 0)) {
        throw new TypeError("The last group does not say what it answers");
      }
      if (group.from + group.answers.length <= current.answered) return current;
      // Groups between the last one received and the last one committed.
      answerLost(current.skipTo(group.from));
      recovery.publish(group, segments);
    } catch (error) {
      const unknown = [...current.skipTo(Infinity), ...this.#ahead?.skipTo(Infinity) ?? []];
      recovery.onUnreadable(error, unknown);
    }
    return current;
  }
}
