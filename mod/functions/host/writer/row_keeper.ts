/** Interface to an external journal. */
import type { JournalRow } from "../../../engine/mod.ts";
import type { Reached, RowRefusal } from "../../wire/messages.ts";

export interface RowKeeper {
  /** Longest time to store a row, while its group is open. */
  readonly waitMs: number;
  /**
   * Stores a row, one at a time. Resolves to `null` on success, otherwise to the reason why its group must not be committed.
   * With `null`, for a group without a row, checks that no other server has committed anything this one lacks. Never rejects.
   */
  keep(row: JournalRow | null): Promise<RowRefusal | null>;
  /**
   * Checks a writer's position before it serves. Resolves to `null` if it is the end of the stored rows, otherwise to the
   * reason why it cannot serve. Never rejects.
   */
  begins(at: Pick<Reached, "seq" | "sum">): Promise<RowRefusal | null>;
}
