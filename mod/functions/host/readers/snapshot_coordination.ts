/** Coordinates a batch's snapshots: those behind reopen. If commits come too fast, the newest reader runs all queries. */
import type { Part } from "./query_batch.ts";

/** Times that readers reopen before one of them runs everything. */
const ROUNDS_MAX = 2;

/** A participating reader, from its assignment to the decision. */
export interface SnapshotHolder {
  /** Reopens the snapshot, because another reader has a newer one. */
  again(): void;
  /** Runs its queries at the snapshot, followed by those of other parts. */
  run(more: readonly Part[]): void;
  drop(): Part;
}

export class SnapshotCoordination {
  /** Readers whose snapshot is not known yet. */
  readonly #awaited: Set<SnapshotHolder>;
  readonly #found = new Map<SnapshotHolder, number>();
  #rounds = 0;

  constructor(holders: Iterable<SnapshotHolder>) {
    this.#awaited = new Set(holders);
  }

  /** Records a reader's snapshot. */
  pinned(holder: SnapshotHolder, ts: number): void {
    if (!this.#awaited.delete(holder)) throw new RangeError("A snapshot was not awaited");
    this.#found.set(holder, ts);
    this.#decide();
  }

  /** Continues without a reader that is gone or too slow. */
  without(holder: SnapshotHolder): void {
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
