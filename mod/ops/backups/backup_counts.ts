/** Counters of a running server's backups, for metrics. */
import { ServiceError } from "../../errors.ts";

export interface LastBackup {
  /** Time of the state it contains or earlier, milliseconds since the epoch. */
  readonly at: number;
  /** Duration including the upload; `null` for backups of an earlier process. */
  readonly ms: number | null;
}

export class BackupCounts {
  #made = 0;
  #failed = 0;
  #last: LastBackup | null = null;

  /** Since the start. */
  get made(): number {
    return this.#made;
  }

  get failed(): number {
    return this.#failed;
  }

  /** The newest known backup, or `null`. */
  get last(): LastBackup | null {
    return this.#last;
  }

  /** Makes and counts a backup. One aborted by a server stop does not count as failed. */
  async count<Made>(make: () => Promise<Made>): Promise<Made> {
    const at = Date.now();
    const since = performance.now();
    try {
      const made = await make();
      this.#made++;
      this.#last = { at, ms: performance.now() - since };
      return made;
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === "unavailable")) this.#failed++;
      throw error;
    }
  }

  /** Records an existing backup. Until one is made, the newest existing one is the last. */
  found(at: number): void {
    if (this.#made === 0 && at > (this.#last?.at ?? -Infinity)) this.#last = { at, ms: null };
  }
}
