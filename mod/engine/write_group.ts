/** State shared by the mutations of a group: the next creation time, and whether a write failed. */
import { EngineError } from "./errors.ts";

/** Step between creation times, in milliseconds; exact in binary until the year 2240. */
const CREATION_STEP_MS = 2 ** -10;

export class WriteGroup {
  #lastCreationTime: number;
  #failure: { readonly cause: unknown } | null = null;

  constructor(lastCreationTime: number) {
    this.#lastCreationTime = lastCreationTime;
  }

  /** Creation time of the newest document, ms since the epoch. A rollback sets it back. */
  get lastCreationTime(): number {
    return this.#lastCreationTime;
  }

  /** Returns the next creation time: `at`, or just after the last one. */
  nextCreationTime(at: number): number {
    this.#lastCreationTime = Math.max(at, this.#lastCreationTime + CREATION_STEP_MS);
    return this.#lastCreationTime;
  }

  /** Releases the creation times of an undone mutation. */
  rewindCreationTime(to: number): void {
    this.#lastCreationTime = to;
  }

  /** Whether a write failed halfway. */
  get failed(): boolean {
    return this.#failure !== null;
  }

  /** Records that a write failed and may be incomplete: only `rollbackGroup` is possible then. */
  fail(cause: unknown): void {
    this.#failure ??= { cause };
  }

  /** Throws if the group can only be rolled back, even if app code caught the first error. */
  check(): void {
    if (this.#failure === null) return;
    const { cause } = this.#failure;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new EngineError("failed_group", `The database failed to write: ${reason}`, { cause });
  }
}
