/** Interface to a log elsewhere, to which a leader appends its commits before it makes them. */
import type { JournalRow } from "../../../engine/mod.ts";
import type { AppendRefusal, Reached } from "../../wire/messages.ts";

export interface CommitAppender {
  /** Longest time to append a row, while its group is open. */
  readonly waitMs: number;
  /**
   * Appends a row to the log, one at a time. Resolves to `null` on success, otherwise to the reason why its group must not be
   * committed. With `null`, for a group without a row, checks that no other server has committed anything this one lacks. Never rejects.
   */
  append(row: JournalRow | null): Promise<AppendRefusal | null>;
  /**
   * Checks a writer's position before it serves. Resolves to `null` if it is the end of the log, otherwise to the
   * reason why it cannot serve. Never rejects.
   */
  begins(at: Pick<Reached, "seq" | "sum">): Promise<AppendRefusal | null>;
}
