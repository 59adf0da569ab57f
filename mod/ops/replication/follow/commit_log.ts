/**
 * A log of commits: what a follower gets its rows from, wherever they lie. `Follower` reads one and knows nothing else of
 * where commits come from.
 */

/** A place in a history: behind which row. */
export interface LogPosition {
  readonly generation: string;
  readonly seq: number;
  readonly ts: number;
  /** Chained sum of the row: of two histories at most one goes on from it. */
  readonly sum: string;
}

/** What is read at once. */
export interface LogPart<Item> {
  /** What follows the position, in its order, without a gap; a bounded number, none when there are none. */
  readonly items: readonly Item[];
  /** The newest commit that the log is known to have. */
  readonly newestTs: number;
  /** When that was so, ms since the epoch by the clock of whoever reads. */
  readonly lookedAt: number;
}

export interface CommitLog<Item> extends AsyncDisposable {
  /** For people. */
  readonly place: string;
  /**
   * What follows a position: at once when there is something, otherwise after a pause in which something may have come.
   * One call at a time. Throws a `LogGapError` when the log does not go on from there and something newer is to be begun
   * with; any other error is told, and it is asked again later. Aborted, it rejects soon.
   */
  read(after: LogPosition, options: { readonly signal: AbortSignal }): Promise<LogPart<Item>>;
}

/** A log does not go on from where a follower stands: it has to begin anew with a newer state. */
export class LogGapError extends Error {
  override readonly name = "LogGapError";
}
