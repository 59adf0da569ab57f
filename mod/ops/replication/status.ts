/** Status of replication. */
import type { GenerationReason } from "../../engine/mod.ts";
import type { RestorableRange } from "./history.ts";

/** Status of the process that ships, sent after each step. */
export interface ShippingStatus {
  readonly generation: string | null;
  readonly reason: GenerationReason | null;
  /** The newest commit at the target; `null` while unknown. */
  readonly shippedTs: number | null;
  /** Pending journal: rows, bytes, and the time of the oldest row, ms since the epoch. */
  readonly pending: { readonly rows: number; readonly bytes: number; readonly oldestAt: number | null };
  /** Whether the generation has a snapshot that restores can start from. */
  readonly restorable: boolean;
  readonly lastSegment: ShippedObject | null;
  readonly lastSnapshot: ShippedObject | null;
  /** The newest last. */
  readonly errors: readonly ShippingError[];
  /**
   * How far the clock was ahead of the newest object at the target when the process started, if that was far: the clock
   * is wrong, or nothing was shipped in the meantime.
   */
  readonly aheadMs: number | null;
  /** Set when another server has taken over the target. */
  readonly takenBy: { readonly host: string; readonly since: string } | null;
  /** Since the start of the process. */
  readonly counts: ShippingCounts;
}

export interface ShippedObject {
  readonly fromTs: number;
  readonly toTs: number;
  readonly bytes: number;
  /** When it was confirmed, ms since the epoch. */
  readonly at: number;
}

export interface ShippingError {
  /** ms since the epoch. */
  readonly at: number;
  readonly message: string;
}

export interface ShippingCounts {
  readonly segments: number;
  readonly segmentBytes: number;
  readonly snapshots: number;
  readonly merges: number;
  readonly failures: number;
  /** Journals that were dropped because they had grown too large. */
  readonly overflows: number;
}

/** A generation as administrators see it. */
export interface GenerationReport {
  readonly generation: string;
  readonly snapshots: number;
  readonly segments: number;
  readonly bytes: number;
  readonly ranges: readonly RestorableRange[];
}
