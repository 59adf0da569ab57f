/**
 * What a writer that follows says of applied rows. Main has the rows, so it is told only what they do not say: most documents
 * that change are not named at all.
 */
import { type AppliedRows, type AppliedTable, rowEntries } from "../../engine/journal/row_entries.ts";
import type { JournalRow } from "../../engine/journal/row.ts";
import type { CommitEntry } from "../../engine/types.ts";
import { EntryPacker, unpackEntries, type WireEntries } from "./packed_entry.ts";

export interface WireApplied {
  /** Tables whose documents changed. */
  readonly tables: readonly AppliedTable[];
  /** Documents of which indexes may hold something else: their keys, as those of one entry. */
  readonly changed: WireEntries;
}

export function packApplied({ tables, changes }: AppliedRows): WireApplied {
  const packer = new EntryPacker();
  if (changes.length > 0) packer.add({ ts: 0, at: 0, changes });
  return { tables, changed: { tables: packer.tables, entries: packer.entries } };
}

/** The commits of rows that were applied. Throws for rows of which something else was told. */
export function appliedEntries(rows: readonly JournalRow[], { tables, changed }: WireApplied): CommitEntry[] {
  const changes = unpackEntries(changed).flatMap(({ changes }) => changes);
  return rowEntries(rows, { tables, changes });
}
