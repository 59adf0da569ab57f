/**
 * When the write-ahead log is copied into the database file.
 *
 * Under load a long log is best: pages that change again and again are copied once. A commit copies it when it has
 * `checkpointPages`, as SQLite does by itself. Under light load a short log is best: a commit that makes the log's file
 * longer takes about twice as long as one that writes over an earlier round of it. So when only small groups have come
 * for a while the log is copied much sooner, when no answer waits for it. A small group among large ones is none of
 * that: under load some batches happen to be small, and the copying would hold up the ones behind them.
 */
import { engineLimits } from "./limits.ts";
import type { Connection } from "./connection.ts";

const { earlyCheckpointPages, groupsBetweenChecks: groupsBetweenLooks, smallGroupCallsMax } = engineLimits;

export class Checkpoints {
  readonly #connection: Connection;
  /** Small groups in a row since the length of the log was last looked at. */
  #groups = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Called between groups, after one of so many calls. */
  afterGroup(calls: number): void {
    this.#groups = calls > smallGroupCallsMax ? 0 : this.#groups + 1;
    if (this.#groups < groupsBetweenLooks) return;
    this.#groups = 0;
    if (this.#logPages() < earlyCheckpointPages) return;
    try {
      // Readers of older snapshots may keep some of it from being copied: then there will be another time.
      this.#connection.statement("PRAGMA wal_checkpoint(PASSIVE)").get();
    } catch {
      // A full disk, as for SQLite's own checkpoints: what is committed stays in the log, and the next commit that finds
      // no room fails with the reason.
    }
  }

  /** Copies the log at once. Gives back whether anything of it was. Throws on a full disk. */
  checkpoint(): boolean {
    const before = this.#copiedPages("NOOP");
    return this.#copiedPages("PASSIVE") > before;
  }

  #copiedPages(mode: "NOOP" | "PASSIVE"): number {
    const copied = this.#connection.statement(`PRAGMA wal_checkpoint(${mode})`).get()?.[2];
    return typeof copied === "number" ? copied : 0;
  }

  /** Pages in the log that a checkpoint would have to look at. */
  #logPages(): number {
    const [, pages, copied] = this.#connection.statement("PRAGMA wal_checkpoint(NOOP)").get() ?? [];
    return typeof pages === "number" && typeof copied === "number" && copied < pages ? pages : 0;
  }
}
