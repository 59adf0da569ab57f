/** How long the call an isolate is running has been running, by the host's own clock: the wall clock may jump. */
import type { Progress } from "../wire/progress_file.ts";

export interface Running {
  /** `null` while no call runs. */
  readonly position: number | null;
  /** Whether it works with the database for all calls. If neither, it has not taken up what it was sent. */
  readonly storing: boolean;
  /** Time since this was first seen, so less than the true time by at most one look's interval. */
  readonly forMs: number;
}

/** Compares one look at a progress file with the next. */
export class CallWatch {
  #seen: Progress | null = null;
  #since: number;

  constructor(now: number) {
    this.#since = now;
  }

  look(progress: Progress | null, now: number): Running {
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
