/** A following writer's report of applied rows. Main has the rows, so it contains little else. */
import { type AppliedRows, type AppliedTable, rowEntries } from "../../engine/journal/row_entries.ts";
import { type JournalRow, recordedAnswers } from "../../engine/journal/journal_row.ts";
import type { CommitEntry, DocumentChange, KeySpace, RecordKey } from "../../engine/types.ts";
import type { FollowedGroup, MutationAnswer } from "../host_port.ts";
import { EntryPacker, unpackEntries, type WireEntries } from "./packed_entry.ts";
import { decodeRecord } from "./replay_record.ts";

export interface WireApplied {
  /** Tables with changed documents. */
  readonly tables: readonly AppliedTable[];
  /** Documents whose index keys may have changed, with their keys, as one entry. */
  readonly changed: WireEntries;
}

export function packApplied({ tables, changes }: AppliedRows): WireApplied {
  const packer = new EntryPacker();
  if (changes.length > 0) packer.add({ ts: 0, at: 0, changes });
  return { tables, changed: { tables: packer.tables, entries: packer.entries } };
}

/** Commits of applied rows, with facts known without decoding them. */
export class AppliedGroup implements FollowedGroup {
  readonly ts: number;
  readonly count: number;
  readonly #rows: readonly JournalRow[];
  readonly #tables: readonly AppliedTable[];
  readonly #changes: readonly DocumentChange[];

  /** `rows` is not empty. */
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
    // Other index types have keys for some documents only.
    for (const { keys } of this.#changes) for (const [space] of keys) spaces.add(space);
    return spaces;
  }

  entries(): CommitEntry[] {
    return rowEntries(this.#rows, { tables: this.#tables, changes: this.#changes });
  }

  /** Decodes the answers of successful mutations, of the client sessions that `isAwaited` accepts. */
  *answers(
    isAwaited: (sessionId: string) => boolean,
  ): Generator<{ readonly key: RecordKey; readonly answer: MutationAnswer }> {
    for (const row of this.#rows) {
      for (const { key, answer } of recordedAnswers(row, isAwaited)) {
        const { ending, ts } = decodeRecord(answer);
        if (!ending.ok) continue;
        yield {
          key,
          answer: { outcome: { ok: true, value: ending.text, logLines: [] }, ts, replayed: false },
        };
      }
    }
  }
}
