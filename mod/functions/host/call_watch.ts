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

/** Without an update for longer, this process was paused, and with it probably the isolate: a frozen container, for example. */
const PAUSE_MS_MIN = 1_000;

/** Compares a progress file with its previous state. */
export class CallWatch {
  #seen: Progress | null = null;
  #since: number;
  #updatedAt: number;

  constructor(now: number) {
    this.#since = now;
    this.#updatedAt = now;
  }

  /** Records the newest progress. Returns how long it has been the same, without pauses of this process. */
  update(progress: Progress | null, now: number): Running {
    const sinceUpdate = now - this.#updatedAt;
    if (sinceUpdate > PAUSE_MS_MIN) this.#since += sinceUpdate;
    this.#updatedAt = now;
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
