/** Live tails: selects the runs of a new batch by filter. The event of a run is encoded once for all tails. */
import { logLimits } from "../../limits.ts";
import { admitsRun, type RunFilter } from "../run_filter.ts";
import { loggedRun, type RunRecord } from "../run_record.ts";
import { runEvent } from "../stream/log_streams.ts";
import type { TailedMessage } from "./messages.ts";

const encoder = new TextEncoder();

export class Tails {
  readonly #filters = new Map<number, RunFilter>();

  set(tail: number, filter: RunFilter): void {
    this.#filters.set(tail, filter);
  }

  delete(tail: number): void {
    this.#filters.delete(tail);
  }

  /** Returns the message for a batch whose first run has the ID; `null` if nothing matches. */
  pick(runs: readonly RunRecord[], firstId: number): TailedMessage | null {
    const tails = [...this.#filters].map(([tail, filter]) => ({
      tail,
      filter,
      events: [] as number[],
      missed: 0,
    }));
    if (tails.length === 0) return null;
    const events: Uint8Array<ArrayBuffer>[] = [];
    let bytes = 0;
    for (const [i, run] of runs.entries()) {
      // Encoded for the first tail that needs it.
      let event: number | null = null;
      for (const share of tails) {
        if (!admitsRun(share.filter, run)) continue;
        if (
          share.events.length >= logLimits.streamRunsMax ||
          event === null && bytes >= logLimits.tailedBytesMax
        ) {
          share.missed++;
          continue;
        }
        if (event === null) {
          const encoded = encoder.encode(runEvent(loggedRun(firstId + i, run)));
          bytes += encoded.length;
          event = events.push(encoded) - 1;
        }
        share.events.push(event);
      }
    }
    const batches = tails.filter(({ events, missed }) => events.length > 0 || missed > 0)
      .map(({ tail, events, missed }) => ({ tail, events, missed }));
    return batches.length === 0
      ? null
      : { type: "Tailed", events, batches, lastId: firstId + runs.length - 1 };
  }
}
