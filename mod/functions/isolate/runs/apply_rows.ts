/** Applies journal rows of another server in a following writer. */
import { type AppliedRows, isHistoryMismatch, type WriterDatabase } from "../../../engine/mod.ts";
import type { ProgressFile } from "../../wire/progress_file.ts";
import type { FrameSender } from "../../wire/segment_frames.ts";
import type { ApplyRows, Reached, RowsApplied, RowsRefused } from "../../wire/messages.ts";
import { packApplied } from "../../wire/applied_rows.ts";

export interface ApplyParts {
  readonly database: WriterDatabase;
  readonly progress: Pick<ProgressFile, "storing" | "idle">;
  readonly sender: Pick<FrameSender, "send">;
}

/** Commits rows as one group, or none of them. */
export async function applyRows(
  { database, progress, sender }: ApplyParts,
  { rows, bodies }: { readonly rows: ApplyRows["rows"]; readonly bodies: readonly string[] },
): Promise<void> {
  const tsBefore = database.ts;
  const committed = commitRows({ database, progress }, { rows, bodies });
  progress.idle();
  if ("type" in committed) return await sender.send(committed);
  const reached = reachedBy(database);
  if (reached === null) throw new TypeError("This database follows no other server");
  await sender.send({ type: "RowsApplied", ...packApplied(committed), reached } satisfies RowsApplied);
  database.maintain(reached.ts - tsBefore);
}

/** The history position of a database. `null` if it follows none. */
export function reachedBy({ history }: Pick<WriterDatabase, "history">): Reached | null {
  if (history === null || history.generation === null) return null;
  const { generation, seq, ts, sum } = history;
  return { generation, seq, ts, sum };
}

function commitRows(
  { database, progress }: Pick<ApplyParts, "database" | "progress">,
  { rows, bodies }: { readonly rows: ApplyRows["rows"]; readonly bodies: readonly string[] },
): AppliedRows | RowsRefused {
  let opened = false;
  progress.storing();
  try {
    database.openGroup();
    opened = true;
    const applied = database.applyRows(
      rows.map(([seq, tsBefore, ts, at, sum, body]) => ({
        seq,
        tsBefore,
        ts,
        at,
        sum,
        body: bodies[body] ?? "",
      })),
    );
    database.commitGroup(null);
    return applied;
  } catch (error) {
    if (opened) database.rollbackGroup();
    const unfit = isHistoryMismatch(error);
    const message = error instanceof Error ? error.message : String(error);
    return { type: "RowsRefused", message, unfit };
  }
}
