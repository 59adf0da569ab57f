/**
 * Schedules checkpoints, which copy the write-ahead log into the database file.
 *
 * Under load a long log is best: a page that changes repeatedly is copied once. SQLite itself starts a checkpoint in a
 * commit that reaches `checkpointPages`. Under light load a short log is best: a commit that extends the log file takes
 * about twice as long as one that overwrites it. So after a series of small groups a checkpoint runs much earlier, when
 * no answer waits for it. A small group among large ones does not count: a checkpoint would delay the next batches.
 */
import { engineLimits } from "./limits.ts";
import type { Connection } from "./connection.ts";

const { earlyCheckpointPages, groupsBetweenChecks: groupsBetweenLooks, smallGroupCallsMax } = engineLimits;

export class Checkpoints {
  readonly #connection: Connection;
  /** Consecutive small groups since the last check of the log's length. */
  #groups = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Called between groups with the number of calls in the last one. */
  afterGroup(calls: number): void {
    this.#groups = calls > smallGroupCallsMax ? 0 : this.#groups + 1;
    if (this.#groups < groupsBetweenLooks) return;
    this.#groups = 0;
    if (this.#logPages() < earlyCheckpointPages) return;
    try {
      // Snapshots of readers may keep a part from being copied. A later checkpoint copies it.
      this.#connection.statement("PRAGMA wal_checkpoint(PASSIVE)").get();
    } catch {
      // On a full disk the log keeps all commits, and the next commit without space fails with the reason.
    }
  }

  /** Runs a checkpoint. Returns whether it copied anything. Throws on a full disk. */
  checkpoint(): boolean {
    const before = this.#copiedPages("NOOP");
    return this.#copiedPages("PASSIVE") > before;
  }

  #copiedPages(mode: "NOOP" | "PASSIVE"): number {
    const copied = this.#connection.statement(`PRAGMA wal_checkpoint(${mode})`).get()?.[2];
    return typeof copied === "number" ? copied : 0;
  }

  #logPages(): number {
    const [, pages, copied] = this.#connection.statement("PRAGMA wal_checkpoint(NOOP)").get() ?? [];
    return typeof pages === "number" && typeof copied === "number" && copied < pages ? pages : 0;
  }
}
