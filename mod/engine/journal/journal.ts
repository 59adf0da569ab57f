/**
 * The writer's journal: each group's transaction adds one row with its changes, kept until it has been copied
 * elsewhere. The rows of a _generation_ form an unbroken history. A change without the journal ends the generation, and
 * the next writer with a journal starts another.
 */
import { Buffer } from "node:buffer";
import type { Connection } from "../connection.ts";
import { engineLimits } from "../limits.ts";
import { type CommitHistory, isEmpty, type JournaledGroup } from "./commit_history.ts";
import {
  CREATE_JOURNAL_SQL,
  type GenerationReason,
  type JournalHead,
  newHead,
  readHead,
  writeState,
} from "./history_head.ts";
import { chainedSum, rowBody } from "./journal_row.ts";

const { byteLength } = Buffer;

const INSERT_SQL =
  "INSERT INTO syncline_journal (seq, tsBefore, ts, at, chars, sum, body) VALUES (?, ?, ?, ?, ?, ?, ?)";

export interface JournalOptions {
  /** Limit for rows that wait to be copied. Beyond it they are dropped and a new generation starts. */
  readonly pendingBytesMax: number;
  readonly now: () => number;
}

export class Journal implements CommitHistory {
  readonly usesEntries = true;
  readonly #connection: Connection;
  readonly #options: JournalOptions;
  #head: JournalHead;
  /** Bytes of unconfirmed rows. */
  #pendingBytes: number;
  /** Rows up to here may be removed. */
  #confirmed: number;
  /** Whether there may be such rows. */
  #old = true;
  /** Head and pending bytes after the open transaction; `null` outside one. */
  #next: { readonly head: JournalHead; readonly pendingBytes: number; readonly confirmed: number } | null =
    null;

  private constructor(
    connection: Connection,
    { options, head }: { readonly options: JournalOptions; readonly head: JournalHead },
  ) {
    this.#connection = connection;
    this.#options = options;
    this.#head = head;
    const state = connection.statement("SELECT seq FROM syncline_journal_state").get();
    this.#confirmed = Number(state?.[0] ?? 0);
    this.#pendingBytes = Number(
      connection.statement("SELECT coalesce(sum(octet_length(body)), 0) FROM syncline_journal WHERE seq > ?")
        .get(this.#confirmed)?.[0],
    );
  }

  /** Opens the journal of a database at this ts in a transaction of its own, and starts a generation if needed. */
  static open(connection: Connection, options: JournalOptions & { readonly ts: number }): Journal {
    connection.execute("BEGIN IMMEDIATE");
    connection.execute(CREATE_JOURNAL_SQL);
    const known = readHead(connection);
    let head = known;
    if (head === null) {
      head = newHead({ seq: 0, ts: options.ts, reason: "first", now: options.now(), after: 0 });
    } else if (head.generation === null || head.ts !== options.ts) {
      const reason = head.generation === null ? head.reason : "written";
      head = newHead({ seq: head.seq, ts: options.ts, reason, now: options.now(), after: head.begunAt });
    }
    if (head !== known) writeState(connection, head);
    connection.execute("COMMIT");
    return new Journal(connection, { options, head });
  }

  get head(): JournalHead {
    return this.#head;
  }

  /** Adds the row of a group to the open transaction, if the group changed anything. */
  append(group: JournaledGroup): null {
    if (isEmpty(group)) return null;
    const { tsBefore, ts, entries } = group;
    const body = rowBody(group);
    const head = this.#head;
    const at = entries.at(-1)?.at ?? this.#options.now();
    const row = { seq: head.seq + 1, tsBefore, ts, at, body };
    const pendingBytes = this.#pendingBytes + byteLength(body);
    if (pendingBytes > this.#options.pendingBytesMax) {
      this.#begin({ seq: row.seq, ts, reason: "overflow" });
      return null;
    }
    // The rows of a dropped generation are never confirmed.
    if (this.#old) this.#remove(this.#confirmed);
    const sum = chainedSum(head.sum, row);
    this.#connection.statement(INSERT_SQL).run(row.seq, tsBefore, ts, at, body.length, sum, body);
    this.#next = {
      head: { ...head, seq: row.seq, ts, sum },
      pendingBytes,
      confirmed: this.#confirmed,
    };
    return null;
  }

  committed(): void {
    if (this.#next === null) return;
    ({ head: this.#head, pendingBytes: this.#pendingBytes, confirmed: this.#confirmed } = this.#next);
    this.#next = null;
  }

  discarded(): void {
    this.#next = null;
  }

  /** Ends a generation, if it is the current one, and drops its pending rows, in a transaction. */
  restart({ generation, reason }: { readonly generation: string; readonly reason: GenerationReason }): void {
    if (generation !== this.#head.generation) return;
    this.#transaction(() => this.#begin({ seq: this.#head.seq, ts: this.#head.ts, reason }));
  }

  /** Drops pending rows on a full disk, if enough to free space, some now, the rest later. Returns whether it did. */
  dropBacklog(): boolean {
    const { journalBytesDropped, journalShareDropped } = engineLimits;
    const much = Math.min(journalBytesDropped, this.#options.pendingBytesMax * journalShareDropped);
    if (this.#pendingBytes < much) return false;
    const { seq, ts } = this.#head;
    this.#transaction(() => {
      this.#begin({ seq, ts, reason: "overflow" });
      this.#remove(seq);
    });
    return true;
  }

  /** Removes some rows up to `seq`, safe elsewhere, in a transaction. Returns whether more remain. */
  confirm({ generation, seq }: { readonly generation: string; readonly seq: number }): boolean {
    if (generation === this.#head.generation && seq > this.#confirmed) {
      const row = this.#connection.statement("SELECT seq, ts, sum FROM syncline_journal WHERE seq = ?")
        .get(Math.min(seq, this.#head.seq)) as [number, number, string] | undefined;
      if (row !== undefined) {
        const [confirmed, ts, sum] = row;
        const bytes = Number(
          this.#connection.statement(
            "SELECT coalesce(sum(octet_length(body)), 0) FROM syncline_journal WHERE seq > ? AND seq <= ?",
          ).get(this.#confirmed, confirmed)?.[0],
        );
        this.#transaction(() => {
          writeState(this.#connection, { ...this.#head, seq: confirmed, ts, sum });
          this.#next = { head: this.#head, pendingBytes: this.#pendingBytes - bytes, confirmed };
          this.#remove(confirmed);
        });
        return this.#old;
      }
    }
    if (this.#old) this.#transaction(() => this.#remove(this.#confirmed));
    return this.#old;
  }

  /** Removes the oldest rows up to `seq`, a bounded number at a time. */
  #remove(seq: number): void {
    const { journalRowsRemoved, journalCharsRemoved } = engineLimits;
    const rows = this.#connection.statement(
      "SELECT seq, chars FROM syncline_journal WHERE seq <= ? ORDER BY seq LIMIT ?+0",
    ).all(seq, journalRowsRemoved) as unknown as [number, number][];
    let chars = 0;
    let last: number | undefined;
    for (const [oldest, length] of rows) {
      if (last !== undefined && chars + length > journalCharsRemoved) break;
      last = oldest;
      chars += length;
    }
    if (last !== undefined) {
      this.#connection.statement("DELETE FROM syncline_journal WHERE seq <= ?").run(last);
    }
    this.#old = last !== undefined &&
      this.#connection.statement("SELECT 1 FROM syncline_journal WHERE seq <= ? LIMIT 1").get(seq) !==
        undefined;
  }

  #begin(from: Pick<JournalHead, "seq" | "ts" | "reason">): void {
    const head = newHead({ ...from, now: this.#options.now(), after: this.#head.begunAt });
    writeState(this.#connection, head);
    this.#next = { head, pendingBytes: 0, confirmed: head.seq };
    this.#old = true;
  }

  #transaction(run: () => void): void {
    this.#connection.statement("BEGIN IMMEDIATE").run();
    try {
      run();
      this.#connection.statement("COMMIT").run();
      this.committed();
    } catch (error) {
      this.discarded();
      if (this.#connection.inTransaction) this.#connection.statement("ROLLBACK").run();
      throw error;
    }
  }
}
