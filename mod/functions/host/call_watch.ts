/** Measures how long an isolate's current call has been running, by a monotonic clock. */
import type { Progress } from "../wire/progress_file.ts";

export interface Running {
  /** `null` while no call runs. */
  readonly position: number | null;
  /** Whether it is starting or committing a group. If neither, it has not started its batch. */
  readonly storing: boolean;
  /** Time since this was first observed. Too short by up to one polling interval. */
  readonly forMs: number;
}

/** Compares a progress file with its previous state. */
export class CallWatch {
  #seen: Progress | null = null;
  #since: number;

  constructor(now: number) {
    this.#since = now;
  }

  /** Records the newest progress. Returns how long it has been the same. */
  update(progress: Progress | null, now: number): Running {
    if (
      progress?.position !== this.#seen?.position || progress?.startedAt !== this.#seen?.startedAt
    ) {
      this.#seen = progress;
      this.#since = now;
    }
    return {
      position: progress?.position ?? null,
      storing: progress?.position === null,
      forMs: now - this.#since,
    };
  }
}
