/** A batch of mutations between its sending and its last answer, and what becomes of it when its writer is lost. */
import type { MutationAnswer } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { Group } from "../../wire/messages.ts";
import { CallWatch } from "../call_watch.ts";
import type { Death } from "../process/isolate.ts";
import type { PendingMutation } from "./mutation_queue.ts";
import { answerFromWire, endedIsolate, failedCallText } from "../outcomes.ts";

/** A call that was running each of these many times when its isolate was lost is taken for the cause. */
export const RUNS_LOST_MAX = 3;

/** A call and the answer it got. */
export interface Answered {
  readonly call: PendingMutation;
  readonly answer: MutationAnswer;
}

export class MutationBatch {
  readonly id: string;
  readonly calls: readonly PendingMutation[];
  #begun: { readonly at: number; readonly watch: CallWatch } | null = null;
  /** Grows with each group. */
  #answered = 0;
  /** What the answered calls took. */
  #ranMs = 0;
  /** Set when the writer has given the rest back. */
  #cut = false;
  /** The call for which the host ends the writer, set before it does. */
  verdict: { readonly position: number; readonly outcome: Outcome } | null = null;

  constructor(id: string, calls: readonly PendingMutation[]) {
    this.id = id;
    this.calls = calls;
  }

  /** The writer has nothing to do before it any more. */
  begin(now: number): void {
    this.#begun = { at: now, watch: new CallWatch(now) };
  }

  /** When the writer could begin with it, by the host's clock, and how long its calls take. Throws before that. */
  get begun(): { readonly at: number; readonly watch: CallWatch } {
    if (this.#begun === null) throw new Error(`Batch ${this.id} has not begun`);
    return this.#begun;
  }

  /** Its message, put together from the calls' own texts. */
  get text(): string {
    const calls = this.calls.map(({ text }) => text).join(",");
    return `{"type":"Batch","batch":${JSON.stringify(this.id)},"calls":[${calls}]}`;
  }

  get done(): boolean {
    return this.#cut || this.#answered === this.calls.length;
  }

  /** The calls that have no answer yet. */
  get unanswered(): readonly PendingMutation[] {
    return this.calls.slice(this.#answered);
  }

  /** Calls from the first on that have been answered. */
  get answered(): number {
    return this.#answered;
  }

  /** Whether this is the next group of this batch. */
  awaits(group: Group): boolean {
    return group.batch === this.id && group.from === this.#answered;
  }

  /** Matches a group's answers with their calls. Throws `RangeError` for a group that is not the next one. */
  accept(group: Group, segments: readonly string[]): Answered[] {
    const from = this.#answered;
    const calls = this.calls.slice(from, from + group.answers.length);
    if (!this.awaits(group) || calls.length === 0 || calls.length < group.answers.length) {
      throw new RangeError(`Group ${group.batch}/${group.from} of ${group.answers.length} was not awaited`);
    }
    const answered = calls.map((call, i): Answered => {
      const answer = group.answers[i];
      if (answer === undefined) throw new RangeError(`Group ${group.batch}/${group.from} has a hole`);
      const told = answerFromWire(answer, segments);
      const { uses } = group;
      return {
        call,
        answer: uses === undefined ? told : { ...told, run: this.#runOf(call, { uses, at: i * 5 }) },
      };
    });
    this.#answered += answered.length;
    return answered;
  }

  /** What stands in `uses` of a call, from `at` on. */
  #runOf(
    { queuedAt }: PendingMutation,
    { uses, at }: { readonly uses: readonly number[]; readonly at: number },
  ): NonNullable<MutationAnswer["run"]> {
    const durationMs = uses[at] ?? 0;
    const queuedMs = Math.max(0, (this.#begun?.at ?? queuedAt) + this.#ranMs - queuedAt);
    this.#ranMs += durationMs;
    const use = {
      documentsRead: uses[at + 1] ?? 0,
      indexRowsRead: uses[at + 2] ?? 0,
      documentsWritten: uses[at + 3] ?? 0,
      indexRowsWritten: uses[at + 4] ?? 0,
    };
    return { durationMs, queuedMs, use };
  }

  /** The writer runs no more of it: gives back the calls without an answer, in order. */
  cut(): readonly PendingMutation[] {
    const left = this.unanswered.filter(({ givenUp }) => !givenUp);
    this.#cut = true;
    return left;
  }

  /** Leaves the calls before `from` without an answer from the writer; gives them back. */
  skipTo(from: number): readonly PendingMutation[] {
    const skipped = this.calls.slice(this.#answered, from);
    this.#answered = Math.max(this.#answered, Math.min(from, this.calls.length));
    return skipped;
  }

  /**
   * After the loss of the writer, once it is known which groups were committed: the unanswered calls that run again, in
   * order, and the cause of the loss, if that is to be answered now. A cause whose failure is recorded is among those that
   * are sent again: its answer waits for the commit of the record, and so do its duplicates.
   */
  afterLoss(
    death: Death,
  ): { again: PendingMutation[]; blamed: { call: PendingMutation; outcome: Outcome } | null } {
    const position = this.verdict?.position ?? death.progress?.position ?? undefined;
    // A call that has been answered since it was noted cannot be the cause of anything that is still open.
    const running = position === undefined || position >= this.#answered
      ? this.calls[position ?? this.#answered]
      : undefined;
    const again = this.unanswered.filter(({ givenUp }) => !givenUp);
    if (running === undefined || running.givenUp) return { again, blamed: null };
    running.runsLost++;
    const { failure, runsLost } = running;
    const outcome = failure === null
      ? this.verdict?.outcome ??
        (position !== undefined && death.cause === "crashed" || runsLost >= RUNS_LOST_MAX
          ? endedIsolate("mutation", death.detail)
          : null)
      // No code of the app runs for its record, so the loss is hardly its fault.
      : runsLost >= RUNS_LOST_MAX
      ? failure
      : null;
    if (outcome === null) return { again, blamed: null };
    if (running.recordsFailure && failure === null && !outcome.ok) {
      const text = failedCallText(running.text, outcome.error);
      const failing: PendingMutation = { ...running, text, failure: outcome, runsLost: 0 };
      return { again: again.map((call) => call === running ? failing : call), blamed: null };
    }
    return { again: again.filter((call) => call !== running), blamed: { call: running, outcome } };
  }
}
