/** A journal in memory, with rows that are created without a database. */
import type { JournalHead, JournalPart, JournalReader, JournalRow } from "../../../mod/engine/mod.ts";
import { nextRow } from "../../../mod/engine/journal/journal_row.ts";

export class MemoryJournal implements JournalReader {
  #head: JournalHead;
  #confirmed: { readonly seq: number; readonly ts: number; readonly sum: string };
  #rows: JournalRow[] = [];

  /** Continues a history after its newest row. */
  constructor(head: JournalHead) {
    this.#head = head;
    this.#confirmed = head;
  }

  get head(): JournalHead {
    return this.#head;
  }

  /** Adds the row of a group. */
  append(group: Omit<Parameters<typeof nextRow>[1], "tsBefore" | "ts" | "catalog" | "now">): void {
    const { seq, ts: tsBefore } = this.#head;
    const ts = group.entries.at(-1)?.ts ?? tsBefore;
    const row = nextRow(this.#head, { ...group, tsBefore, ts, catalog: null, now: () => 0 });
    this.#rows.push(row);
    this.#head = { ...this.#head, seq: seq + 1, ts, sum: row.sum };
  }

  /** Rows up to here are safe elsewhere. */
  confirm(seq: number): void {
    this.#confirmed = this.#rows.findLast((row) => row.seq <= seq) ?? this.#confirmed;
    this.#rows = this.#rows.filter((row) => row.seq > seq);
  }

  read(after: number): JournalPart {
    const rows = this.#rows.filter(({ seq }) => seq > after);
    const pending = { rows: rows.length, bytes: 0, commits: rows.length, oldestAt: rows[0]?.at ?? null };
    return { head: this.#head, confirmed: this.#confirmed, rows, pending };
  }

  [Symbol.dispose](): void {}
}
