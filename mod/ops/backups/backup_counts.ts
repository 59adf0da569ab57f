/** Backups of a running server, by how they ended: told by those who make them, read by whoever watches over them. */
import { ServiceError } from "../../errors.ts";

export interface LastBackup {
  /** Its state is that of this moment or a later one, milliseconds since the epoch. */
  readonly at: number;
  /** How long it took until it was where it belongs; `null` for one of an earlier life of the server. */
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

  /** The newest one that is known; `null` without. */
  get last(): LastBackup | null {
    return this.#last;
  }

  /** Makes one and counts it. One that the end of the server cut off has not failed. */
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

  /** One was found. As long as none was made since the start, the newest of those is the last one. */
  found(at: number): void {
    if (this.#made === 0 && at > (this.#last?.at ?? -Infinity)) this.#last = { at, ms: null };
  }
}
