/** A batch of mutations sent to the writer, and its recovery when the writer is lost. */
import type { MutationAnswer } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { Group } from "../../wire/messages.ts";
import { CallWatch } from "../call_watch.ts";
import type { Death } from "../process/isolate.ts";
import type { PendingMutation } from "./mutation_queue.ts";
import { answerFromWire, endedIsolate, failedCallText } from "../outcomes.ts";

/** A call that was running this often when its isolate was lost counts as the cause. */
export const RUNS_LOST_MAX = 3;

/** A call and its answer. */
export interface Answered {
  readonly call: PendingMutation;
  readonly answer: MutationAnswer;
}

export class MutationBatch {
  readonly id: string;
  readonly calls: readonly PendingMutation[];
  #begun: { readonly at: number; readonly watch: CallWatch } | null = null;
  /** Increases with each group. */
  #answered = 0;
  /** Durations of the answered calls. */
  #ranMs = 0;
  /** Set when the writer has returned the remaining calls. */
  #cut = false;
  /** The call for which the host ends the writer. Set before it does. */
  verdict: { readonly position: number; readonly outcome: Outcome } | null = null;

  constructor(id: string, calls: readonly PendingMutation[]) {
    this.id = id;
    this.calls = calls;
  }

  /** Records that the writer has finished earlier work. */
  begin(now: number): void {
    this.#begun = { at: now, watch: new CallWatch(now) };
  }

  /** Monitors the running call since the writer could start the batch. Throws before that. */
  get begun(): { readonly at: number; readonly watch: CallWatch } {
    if (this.#begun === null) throw new Error(`Batch ${this.id} has not begun`);
    return this.#begun;
  }

  /** Its message, concatenated from the serialized calls. */
  get text(): string {
    const calls = this.calls.map(({ text }) => text).join(",");
    return `{"type":"Batch","batch":${JSON.stringify(this.id)},"calls":[${calls}]}`;
  }

  get done(): boolean {
    return this.#cut || this.#answered === this.calls.length;
  }

  /** Calls without an answer. */
  get unanswered(): readonly PendingMutation[] {
    return this.calls.slice(this.#answered);
  }

  /** Number of answered calls, from the first one. */
  get answered(): number {
    return this.#answered;
  }

  awaits(group: Group): boolean {
    return group.batch === this.id && group.from === this.#answered;
  }

  /** Matches a group's answers to calls. @throws RangeError for any other group. */
  accept(group: Group, segments: readonly string[]): Answered[] {
    const from = this.#answered;
    const calls = this.calls.slice(from, from + group.answers.length);
    if (!this.awaits(group) || calls.length === 0 || calls.length < group.answers.length) {
      throw new RangeError(`Group ${group.batch}/${group.from} of ${group.answers.length} was not awaited`);
    }
    const answered = calls.map((call, i): Answered => {
      const answer = group.answers[i];
      if (answer === undefined) throw new RangeError(`Group ${group.batch}/${group.from} has a hole`);
      const decoded = answerFromWire(answer, segments);
      const { uses } = group;
      return {
        call,
        answer: uses === undefined ? decoded : { ...decoded, run: this.#runOf(call, { uses, at: i * 5 }) },
      };
    });
    this.#answered += answered.length;
    return answered;
  }

  /** Reads the entry of a call in `uses`, starting at `at`. */
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

  /** Ends the batch early. Returns the unanswered calls in order. */
  cut(): readonly PendingMutation[] {
    const left = this.unanswered.filter(({ abandoned }) => !abandoned);
    this.#cut = true;
    return left;
  }

  /** Skips unanswered calls before `from` and returns them. */
  skipTo(from: number): readonly PendingMutation[] {
    const skipped = this.calls.slice(this.#answered, from);
    this.#answered = Math.max(this.#answered, Math.min(from, this.calls.length));
    return skipped;
  }

  /**
   * After the writer was lost and its committed groups are known: returns the unanswered calls to run again, in order, and the
   * cause of the loss if it is answered now. A cause whose failure is recorded runs again as well: its answer waits for the
   * commit of that record, as do its duplicates.
   */
  afterLoss(
    death: Death,
  ): { again: PendingMutation[]; blamed: { call: PendingMutation; outcome: Outcome } | null } {
    const position = this.verdict?.position ?? death.progress?.position ?? undefined;
    // A call answered since its progress was recorded cannot be the cause.
    const running = position === undefined || position >= this.#answered
      ? this.calls[position ?? this.#answered]
      : undefined;
    const again = this.unanswered.filter(({ abandoned }) => !abandoned);
    if (running === undefined || running.abandoned) return { again, blamed: null };
    running.runsLost++;
    const { failure, runsLost } = running;
    const outcome = failure === null
      ? this.verdict?.outcome ??
        (position !== undefined && death.cause === "crashed" || runsLost >= RUNS_LOST_MAX
          ? endedIsolate("mutation", death.detail)
          : null)
      // No app code runs for its record, so it is hardly at fault.
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
