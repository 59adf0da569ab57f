/** The work of a writer that follows the commits of another server: journal rows, committed as they come. */
import { EngineError, type WriterDatabase } from "../../../engine/mod.ts";
import type { ProgressFile } from "../../wire/progress_file.ts";
import type { FrameSender } from "../../wire/segment_frames.ts";
import type { ApplyRows, Reached, RowsApplied, RowsRefused } from "../../wire/messages.ts";
import { EntryPacker } from "../../wire/packed_entry.ts";

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
  const { tables, entries, refused } = commitRows({ database, progress }, { rows, bodies });
  progress.idle();
  const reached = reachedBy(database);
  if (refused !== null) await sender.send(refused);
  else if (reached === null) throw new TypeError("This database follows nobody");
  else {
    await sender.send({ type: "RowsApplied", tables, entries, reached } satisfies RowsApplied);
    database.tend(entries.length);
  }
}

/** Where a database stands; `null` for one that follows no history. */
export function reachedBy({ history }: Pick<WriterDatabase, "history">): Reached | null {
  if (history === null || history.generation === null) return null;
  const { generation, seq, ts, sum } = history;
  return { generation, seq, ts, sum };
}

function commitRows(
  { database, progress }: Pick<ApplyParts, "database" | "progress">,
  { rows, bodies }: { readonly rows: ApplyRows["rows"]; readonly bodies: readonly string[] },
): EntryPacker & { readonly refused: RowsRefused | null } {
  const packer = new EntryPacker();
  let opened = false;
  progress.storing();
  try {
    database.openGroup();
    opened = true;
    for (const [seq, tsBefore, ts, at, sum, body] of rows) {
      const row = { seq, tsBefore, ts, at, sum, body: bodies[body] ?? "" };
      for (const entry of database.applyRow(row)) packer.add(entry);
    }
    database.commitGroup(null);
    return Object.assign(packer, { refused: null });
  } catch (error) {
    if (opened) database.rollbackGroup();
    const unfit = error instanceof EngineError && error.code === "bad_entry";
    const message = error instanceof Error ? error.message : String(error);
    return Object.assign(new EntryPacker(), { refused: { type: "RowsRefused", message, unfit } as const });
  }
}
