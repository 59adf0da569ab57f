/**
 * The writer's journal: each group's transaction adds one row with its changes, kept until it has been copied
 * elsewhere. The rows of a _generation_ form an unbroken history. A change without the journal ends the generation, and
 * the next writer with a journal starts another.
 */
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { engineLimits } from "../limits.ts";
import type { Connection } from "../connection.ts";
import type { RecordRun } from "../record_runs.ts";
import type { CommitEntry } from "../types.ts";
import type { CatalogState } from "./catalog_state.ts";
import { chainedSum, firstSum, rowBody } from "./journal_row.ts";

/** Tables of the journal. They exist only in databases that have had one. */
export const CREATE_JOURNAL_SQL = `
  CREATE TABLE IF NOT EXISTS syncline_journal (
    seq INTEGER PRIMARY KEY, tsBefore INTEGER NOT NULL, ts INTEGER NOT NULL, at REAL NOT NULL,
    chars INTEGER NOT NULL, sum TEXT NOT NULL, body TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS syncline_journal_state (one INTEGER PRIMARY KEY CHECK (one = 1),
    generation TEXT, reason TEXT NOT NULL, firstSeq INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL,
    sum TEXT NOT NULL, begunAt REAL NOT NULL);`;

const { byteLength } = Buffer;

const INSERT_SQL =
  "INSERT INTO syncline_journal (seq, tsBefore, ts, at, chars, sum, body) VALUES (?, ?, ?, ?, ?, ?, ?)";
const STATE_SQL = "SELECT generation, reason, firstSeq, seq, ts, sum, begunAt FROM syncline_journal_state";

/** Why a generation started. */
export type GenerationReason =
  | "first"
  | "written"
  | "restored"
  /** The journal exceeded its limit and was dropped. */
  | "overflow"
  /** The copied rows cannot be continued. */
  | "lost"
  | "promoted"
  /** A cluster started with it and keeps the history from there on. */
  | "cluster";

/** A position in a history. */
export interface JournalHead {
  /** `null` if the history cannot be continued from here. */
  readonly generation: string | null;
  readonly reason: GenerationReason;
  /** The row before the generation's first. */
  readonly firstSeq: number;
  /** The newest row and its commit. */
  readonly seq: number;
  readonly ts: number;
  readonly sum: string;
  /** Start of the generation according to its name, ms since the epoch. */
  readonly begunAt: number;
}

export interface JournalOptions {
  /** Limit for rows that wait to be copied. Beyond it they are dropped and a new generation starts. */
  readonly pendingBytesMax: number;
  readonly now: () => number;
}

/** The changes of a group that is about to be committed. */
export interface JournaledGroup {
  readonly tsBefore: number;
  readonly ts: number;
  readonly entries: readonly CommitEntry[];
  readonly records: readonly RecordRun[];
  readonly lastCreationTime: number;
  readonly catalog: CatalogState | null;
}

export function hasJournal(connection: Pick<Connection, "statement">): boolean {
  return connection.statement("SELECT 1 FROM sqlite_schema WHERE name = 'syncline_journal_state'").get() !==
    undefined;
}

/** Returns the position of a database with a journal. */
export function readHead(connection: Pick<Connection, "statement">): JournalHead | null {
  const row = connection.statement(STATE_SQL).get() as
    | [string | null, GenerationReason, number, number, number, string, number]
    | undefined;
  if (row === undefined) return null;
  const [generation, reason, firstSeq, seq, ts, sum, begunAt] = row;
  const newest = connection.statement("SELECT seq, ts, sum FROM syncline_journal ORDER BY seq DESC LIMIT 1")
    .get() as
      | [number, number, string]
      | undefined;
  if (newest === undefined || newest[0] <= seq) {
    return { generation, reason, firstSeq, seq, ts, sum, begunAt };
  }
  return { generation, reason, firstSeq, seq: newest[0], ts: newest[1], sum: newest[2], begunAt };
}

/** Returns the newest confirmed row, or the row before the generation's first. */
export function readConfirmed(connection: Connection): Pick<JournalHead, "seq" | "ts" | "sum"> | null {
  const row = connection.statement(STATE_SQL).get() as
    | [string | null, GenerationReason, number, number, number, string, number]
    | undefined;
  if (row === undefined) return null;
  const [, , , seq, ts, sum] = row;
  return { seq, ts, sum };
}

/** Records a change without the journal, inside its transaction: the next commit starts a new generation. */
export function endGeneration(connection: Connection, reason: GenerationReason): void {
  const head = readHead(connection);
  if (head === null) return;
  connection.statement("DELETE FROM syncline_journal").run();
  writeState(connection, { ...head, generation: null, reason });
}

/** Sets the position of an applied history, creating its row if needed. */
export function writeHead(connection: Connection, head: JournalHead): void {
  connection.execute(CREATE_JOURNAL_SQL);
  writeState(connection, head);
}

/** Sets the position in an existing row. */
export function moveHead(
  connection: Connection,
  { seq, ts, sum }: Pick<JournalHead, "seq" | "ts" | "sum">,
): void {
  connection.statement("UPDATE syncline_journal_state SET seq = ?, ts = ?, sum = ? WHERE one = 1").run(
    seq,
    ts,
    sum,
  );
}

function writeState(connection: Connection, head: JournalHead): void {
  connection.statement(
    `INSERT OR REPLACE INTO syncline_journal_state (one, generation, reason, firstSeq, seq, ts, sum, begunAt)
     VALUES (1, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(head.generation, head.reason, head.firstSeq, head.seq, head.ts, head.sum, head.begunAt);
}

export class Journal {
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
  append(group: JournaledGroup): void {
    const { tsBefore, ts, entries, records, catalog } = group;
    if (entries.length === 0 && records.length === 0 && catalog === null) return;
    const body = rowBody(group);
    const head = this.#head;
    const at = entries.at(-1)?.at ?? this.#options.now();
    const row = { seq: head.seq + 1, tsBefore, ts, at, body };
    const pendingBytes = this.#pendingBytes + byteLength(body);
    if (pendingBytes > this.#options.pendingBytesMax) {
      return this.#begin({ seq: row.seq, ts, reason: "overflow" });
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
  }

  /** Called after the transaction's commit. */
  committed(): void {
    if (this.#next === null) return;
    ({ head: this.#head, pendingBytes: this.#pendingBytes, confirmed: this.#confirmed } = this.#next);
    this.#next = null;
  }

  /** Called after the transaction's rollback. */
  discard(): void {
    this.#next = null;
  }

  /**
   * Ends a generation and drops its pending rows, in a transaction of its own. Does nothing if it is not the current
   * one.
   */
  restart({ generation, reason }: { readonly generation: string; readonly reason: GenerationReason }): void {
    if (generation !== this.#head.generation) return;
    this.#transaction(() => this.#begin({ seq: this.#head.seq, ts: this.#head.ts, reason }));
  }

  /**
   * Drops pending rows after the disk is full, if there are enough of them to free space. Returns whether it did. It
   * removes some rows at once and the rest with the next groups.
   */
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

  /**
   * Removes some rows of a generation up to `seq`, which are safe elsewhere, in a transaction of its own. Returns
   * whether more remain. Ignores other generations.
   */
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
      this.discard();
      if (this.#connection.inTransaction) this.#connection.statement("ROLLBACK").run();
      throw error;
    }
  }
}

/** Returns the start of a generation. Names begin with the time, so they sort by age. */
export function newHead(
  from: {
    readonly seq: number;
    readonly ts: number;
    readonly reason: GenerationReason;
    readonly now: number;
    /** Start of the previous one. */
    readonly after: number;
  },
): JournalHead {
  const { seq, ts, reason, now, after } = from;
  // Starts after the previous one even if the clock was set back.
  const begunAt = Math.max(now, after + 1_000);
  const time = new Date(begunAt).toISOString().replace(/\.\d+Z$/, "Z").replaceAll(/[-:]/g, "");
  const generation = `${time}-${randomBytes(4).toString("hex")}`;
  return { generation, reason, firstSeq: seq, seq, ts, sum: firstSum(generation), begunAt };
}
