/** What the mutations of one group share: the next creation time, and whether SQLite has failed a write. */
import { EngineError } from "./errors.ts";

/** Creation times that would be equal are this far apart, in milliseconds: exact in binary until the year 2240. */
const CREATION_STEP_MS = 2 ** -10;

export class WriteGroup {
  #lastCreationTime: number;
  #failure: { readonly cause: unknown } | null = null;

  constructor(lastCreationTime: number) {
    this.#lastCreationTime = lastCreationTime;
  }

  /** Creation time of the newest document, ms since the epoch. Moves forward with each insert, back with a rollback. */
  get lastCreationTime(): number {
    return this.#lastCreationTime;
  }

  /** A creation time for the next document: `at`, or just behind the last one. */
  nextCreationTime(at: number): number {
    this.#lastCreationTime = Math.max(at, this.#lastCreationTime + CREATION_STEP_MS);
    return this.#lastCreationTime;
  }

  /** Takes back what an undone mutation used. */
  rewindCreationTime(to: number): void {
    this.#lastCreationTime = to;
  }

  /** Whether a write has failed halfway. */
  get failed(): boolean {
    return this.#failure !== null;
  }

  /** Marks the group: a write failed and may be half done, so nothing but `rollbackGroup` is possible. */
  fail(cause: unknown): void {
    this.#failure ??= { cause };
  }

  /** Throws when the group can only be rolled back, whatever app code did with the first error. */
  check(): void {
    if (this.#failure === null) return;
    const { cause } = this.#failure;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new EngineError("failed_group", `The database failed to write: ${reason}`, { cause });
  }
}
