/** The position of a database in a history: the name of the generation, and its newest row. It is stored in one row. */
import { randomBytes } from "node:crypto";
import type { Connection } from "../connection.ts";
import { firstSum } from "./journal_row.ts";

/** Tables of the journal. They exist only in databases that have had one. */
export const CREATE_JOURNAL_SQL = `
  CREATE TABLE IF NOT EXISTS syncline_journal (
    seq INTEGER PRIMARY KEY, tsBefore INTEGER NOT NULL, ts INTEGER NOT NULL, at REAL NOT NULL,
    chars INTEGER NOT NULL, sum TEXT NOT NULL, body TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS syncline_journal_state (one INTEGER PRIMARY KEY CHECK (one = 1),
    generation TEXT, reason TEXT NOT NULL, firstSeq INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL,
    sum TEXT NOT NULL, begunAt REAL NOT NULL);`;

const STATE_SQL = "SELECT generation, reason, firstSeq, seq, ts, sum, begunAt FROM syncline_journal_state";

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

export function writeState(connection: Connection, head: JournalHead): void {
  connection.statement(
    `INSERT OR REPLACE INTO syncline_journal_state (one, generation, reason, firstSeq, seq, ts, sum, begunAt)
     VALUES (1, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(head.generation, head.reason, head.firstSeq, head.seq, head.ts, head.sum, head.begunAt);
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
