/**
 * A log of commits: the source of a follower's rows. `Follower` depends on this interface only, not on the location of
 * the commits.
 */

/** A position in a history, after a row. */
export interface LogPosition {
  readonly generation: string;
  readonly seq: number;
  readonly ts: number;
  /** Chained checksum of the row: at most one of two histories continues from it. */
  readonly sum: string;
}

/** Result of one read. */
export interface LogBatch<Item> {
  /** Rows after the position, in order and without a gap. Bounded; empty when there are none. */
  readonly items: readonly Item[];
  /** The newest known commit of the log, also beyond these rows. */
  readonly newestTs: number;
  /** Time at which the log was checked for it, ms since the epoch by the clock of the reader. */
  readonly checkedAt: number;
}

export interface CommitLog<Item> extends AsyncDisposable {
  /** Display name. */
  readonly location: string;
  /**
   * Returns the rows after a position: at once when there are some, otherwise after a pause. One call at a time. Throws
   * a `LogGapError` when the log does not continue from there and the follower must start from a newer state. Any other
   * error is reported, and the read is retried later. Rejects soon after an abort.
   */
  read(after: LogPosition, options: { readonly signal: AbortSignal }): Promise<LogBatch<Item>>;
}

/** The log does not continue from the position of a follower, which must start from a newer state. */
export class LogGapError extends Error {
  override readonly name = "LogGapError";
}
