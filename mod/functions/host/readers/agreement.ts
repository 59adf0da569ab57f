/**
 * Brings the readers of a wave to one snapshot. They open theirs together and tell the ts they found; those that are behind
 * open again. When commits come too fast for that, the reader with the newest snapshot runs the queries of all.
 */
import type { Part } from "./wave_run.ts";

/** Times that readers open again before one of them gets everything. */
const ROUNDS_MAX = 2;

/** A reader that takes part, from its assignment to the outcome. */
export interface Holder {
  /** Open the snapshot again: another reader found a newer one. */
  again(): void;
  /** Run the queries at the snapshot, and those of other parts behind them. */
  run(more: readonly Part[]): void;
  /** Let go of the snapshot; gives back the part. */
  drop(): Part;
}

export class Agreement {
  /** Readers whose snapshot is not known yet. */
  readonly #awaited: Set<Holder>;
  /** The snapshots of the others. */
  readonly #found = new Map<Holder, number>();
  #rounds = 0;

  constructor(holders: Iterable<Holder>) {
    this.#awaited = new Set(holders);
  }

  /** A reader has opened its snapshot. */
  pinned(holder: Holder, ts: number): void {
    if (!this.#awaited.delete(holder)) throw new RangeError("A snapshot was not awaited");
    this.#found.set(holder, ts);
    this.#decide();
  }

  /** A reader is gone, or too slow to be waited for: the others go on without it. */
  without(holder: Holder): void {
    this.#found.delete(holder);
    if (this.#awaited.delete(holder)) this.#decide();
  }

  #decide(): void {
    if (this.#awaited.size > 0 || this.#found.size === 0) return;
    const newest = Math.max(...this.#found.values());
    const behind = [...this.#found].filter(([, ts]) => ts < newest).map(([holder]) => holder);
    if (behind.length === 0) {
      for (const holder of this.#found.keys()) holder.run([]);
    } else if (this.#rounds++ < ROUNDS_MAX) {
      for (const holder of behind) {
        this.#found.delete(holder);
        this.#awaited.add(holder);
      }
      for (const holder of behind) holder.again();
    } else {
      const [keeper, ...others] = [...this.#found].sort(([, a], [, b]) => b - a).map(([holder]) => holder);
      keeper?.run(others.map((holder) => holder.drop()));
    }
  }
}
