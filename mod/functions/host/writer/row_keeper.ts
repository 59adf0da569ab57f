/** Where the rows of a writer are kept whose history lies elsewhere. */
import type { JournalRow } from "../../../engine/mod.ts";
import type { Reached, RowRefusal } from "../../wire/messages.ts";

export interface RowKeeper {
  /** Longest time that a row may wait, while its group is open. */
  readonly waitMs: number;
  /**
   * Keeps a row. Resolves to `null` when it is safe, otherwise to why its group is not to be committed. One at a time.
   * With `null`, for a group without a row, it resolves to `null` if no other server had committed anything that this one
   * lacks. Never rejects.
   */
  keep(row: JournalRow | null): Promise<RowRefusal | null>;
  /**
   * A writer is about to serve from a database that stands there. Resolves to `null` when that is where the rows end that
   * were kept, otherwise, when calls may be answered, to why it cannot serve. Never rejects.
   */
  begins(at: Pick<Reached, "seq" | "sum">): Promise<RowRefusal | null>;
}
