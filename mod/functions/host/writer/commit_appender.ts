/** Interface to a log elsewhere, to which a leader appends its commits before it makes them. */
import type { JournalRow } from "../../../engine/mod.ts";
import type { AppendRefusal, Reached } from "../../wire/messages.ts";

export interface CommitAppender {
  /** Longest time to append a row, while its group is open. */
  readonly waitMs: number;
  /** Appends a row, or for `null` checks for foreign commits. Resolves to the reason not to commit, or `null`. Never rejects. */
  append(row: JournalRow | null): Promise<AppendRefusal | null>;
  /** Checks that a writer is at the end of the log. Resolves to the reason why not, or `null`. Never rejects. */
  begins(at: Pick<Reached, "seq" | "sum">): Promise<AppendRefusal | null>;
}
