/** Caches the last Transition with a single changed result: most sockets that share a query get an identical frame. */
import type { Outcome } from "../../functions/outcome.ts";
import { sameVersion, type StateVersion } from "../../protocol/state_version.ts";
import type { DiffCache } from "./diff_cache.ts";
import { resultItem, transitionFrame } from "./transition_frame.ts";

export interface SingleUpdate {
  readonly start: StateVersion;
  readonly end: StateVersion;
  readonly queryId: number;
  /** The client's previous result, if it accepts diffs. */
  readonly base: Outcome | null;
  readonly outcome: Outcome;
  /** Whether the client accepts error ids. */
  readonly errorIds: boolean;
}

export class FrameMemo {
  readonly #diffs: DiffCache;
  readonly #dev: boolean;
  #last: (SingleUpdate & { readonly frame: string }) | null = null;

  constructor(diffs: DiffCache, options: { readonly dev: boolean }) {
    this.#diffs = diffs;
    this.#dev = options.dev;
  }

  item(
    queryId: number,
    { base, outcome, errorIds }: Pick<SingleUpdate, "base" | "outcome" | "errorIds">,
  ): string {
    const diff = this.#diffs.diff(base, outcome);
    return resultItem(queryId, { outcome, diff, dev: this.#dev, errorIds });
  }

  /** Returns the frame of a Transition with one result. */
  frame(update: SingleUpdate): string {
    const last = this.#last;
    if (
      last !== null && last.outcome === update.outcome && last.base === update.base &&
      last.queryId === update.queryId && last.errorIds === update.errorIds &&
      sameVersion(last.start, update.start) &&
      sameVersion(last.end, update.end)
    ) return last.frame;
    const { start, end } = update;
    const frame = transitionFrame(start, { end, items: [this.item(update.queryId, update)] });
    this.#last = { ...update, frame };
    return frame;
  }

  clear(): void {
    this.#last = null;
  }
}
