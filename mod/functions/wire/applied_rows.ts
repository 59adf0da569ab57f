/**
 * What a writer that follows says of applied rows. Main has the rows, so it is told only what they do not say: most documents
 * that change are not named at all.
 */
import { type AppliedRows, type AppliedTable, rowEntries } from "../../engine/journal/row_entries.ts";
import type { JournalRow } from "../../engine/journal/journal_row.ts";
import type { CommitEntry, DocumentChange, KeySpace } from "../../engine/types.ts";
import type { FollowedGroup } from "../host_port.ts";
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

/** The commits of rows that were applied, and what is known of them without making them. */
export class AppliedGroup implements FollowedGroup {
  readonly ts: number;
  readonly count: number;
  readonly #rows: readonly JournalRow[];
  readonly #tables: readonly AppliedTable[];
  readonly #changes: readonly DocumentChange[];

  /** There is at least one row. */
  constructor(rows: readonly JournalRow[], { tables, changed }: WireApplied) {
    this.ts = rows.at(-1)?.ts ?? 0;
    this.count = this.ts - (rows[0]?.tsBefore ?? 0);
    this.#rows = rows;
    this.#tables = tables;
    this.#changes = unpackEntries(changed).flatMap(({ changes }) => changes);
  }

  get changesSystemTables(): boolean {
    return this.#tables.some(({ name }) => name.startsWith("_"));
  }

  get keySpaces(): ReadonlySet<KeySpace> {
    const spaces = new Set<KeySpace>();
    for (const { space, indexes } of this.#tables) {
      spaces.add(space);
      for (const { space } of indexes) spaces.add(space);
    }
    // Other kinds of indexes have keys of some documents.
    for (const { keys } of this.#changes) for (const [space] of keys) spaces.add(space);
    return spaces;
  }

  entries(): CommitEntry[] {
    return rowEntries(this.#rows, { tables: this.#tables, changes: this.#changes });
  }
}
