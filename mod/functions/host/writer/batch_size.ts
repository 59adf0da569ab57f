/** Determines how many mutations fit into a batch, from the durations of earlier ones. */
import { isolateLimits } from "../../limits.ts";
import { Costs } from "../costs.ts";
import type { Answered, MutationBatch } from "./mutation_batch.ts";

/** Weight of the newest batch in the mean duration of a call. */
const NEWEST_WEIGHT = 0.25;

export class BatchSize {
  readonly costs = new Costs();
  /** Mean duration of a call, including its share of the commit. */
  #callMs = isolateLimits.batchSliceMs / isolateLimits.batchCallsMax;

  /** Calls of mean duration that fit into a batch, at least one. */
  get callsMax(): number {
    const fitting = Math.floor(isolateLimits.batchSliceMs / this.#callMs);
    return Math.max(1, Math.min(isolateLimits.batchCallsMax, fitting));
  }

  /** Records the runs of a group. */
  ran(answered: readonly Answered[]): void {
    for (const { call: { work }, answer: { replayed, run } } of answered) {
      // A recorded answer says nothing about the function's cost.
      if (!replayed && run !== undefined) this.costs.took(work, run.durationMs);
    }
  }

  ended(batch: MutationBatch, now: number): void {
    const ms = (now - batch.begun.at) / Math.max(1, batch.answered);
    const [first] = batch.calls;
    // A slow call that ran alone says nothing about others.
    const usual = batch.answered > 1 || this.costs.of(first?.work ?? "") < isolateLimits.batchSliceMs;
    if (usual) this.#callMs += (Math.min(ms, isolateLimits.batchSliceMs) - this.#callMs) * NEWEST_WEIGHT;
  }
}
