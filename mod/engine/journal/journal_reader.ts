/** The journal as whoever copies it elsewhere reads it, beside the writer. */
import { engineLimits } from "../limits.ts";
import { Connection } from "../connection.ts";
import { hasJournal, type JournalHead, readConfirmed, readHead } from "./journal.ts";
import type { JournalRow } from "./journal_row.ts";

/** What is read at one moment. */
export interface JournalPart {
  /** Where the history stands; `null` while no writer keeps one. */
  readonly head: JournalHead | null;
  /** The newest row that was confirmed, or the row before the generation's first; `null` like the head. */
  readonly confirmed: { readonly seq: number; readonly ts: number; readonly sum: string } | null;
  /** The rows that follow in their order: as many as `journalCharsRead` has room for, at least one if there is one. */
  readonly rows: readonly JournalRow[];
  /** All that follow, those in `rows` included. */
  readonly pending: PendingRows;
}

export interface JournalReader extends Disposable {
  /** What follows row `seq`. */
  read(seq: number): JournalPart;
}

export interface PendingRows {
  readonly rows: number;
  /** Of their texts, in UTF-8. */
  readonly bytes: number;
  /** Commits in them. */
  readonly commits: number;
  /** ms since the epoch; `null` without rows. */
  readonly oldestAt: number | null;
}

/** Opens a database that a writer has opened before. Throws an `UnusableDatabaseError` as readers do. */
export function openJournalReader(path: string): JournalReader {
  const connection = Connection.openReader(path);
  let there = false;
  return {
    read(seq) {
      there ||= hasJournal(connection);
      if (!there) {
        return {
          head: null,
          confirmed: null,
          rows: [],
          pending: { rows: 0, bytes: 0, commits: 0, oldestAt: null },
        };
      }
      connection.statement("BEGIN").run();
      try {
        return {
          head: readHead(connection),
          confirmed: readConfirmed(connection),
          rows: rowsAfter(connection, seq),
          pending: pendingAfter(connection, seq),
        };
      } finally {
        connection.statement("COMMIT").run();
      }
    },
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  };
}

function rowsAfter(connection: Connection, seq: number): JournalRow[] {
  const rows: JournalRow[] = [];
  let chars = 0;
  let wanted = 16;
  for (let last = seq;;) {
    const found = connection.statement(
      "SELECT seq, tsBefore, ts, at, sum, body FROM syncline_journal WHERE seq > ? ORDER BY seq LIMIT ?+0",
    ).all(last, wanted) as unknown as [number, number, number, number, string, string][];
    for (const [number, tsBefore, ts, at, sum, body] of found) {
      rows.push({ seq: number, tsBefore, ts, at, sum, body });
      chars += body.length;
      last = number;
      if (chars >= engineLimits.journalCharsRead) return rows;
    }
    if (found.length < wanted) return rows;
    // About as many as there is room for, going by those before.
    const fitting = Math.ceil((engineLimits.journalCharsRead - chars) / (chars / rows.length));
    wanted = Math.max(1, Math.min(1024, fitting));
  }
}

function pendingAfter(connection: Connection, seq: number): PendingRows {
  const [rows, bytes, commits, oldestAt] = connection.statement(
    `SELECT count(*), coalesce(sum(octet_length(body)), 0), coalesce(max(ts) - min(tsBefore), 0), min(at)
     FROM syncline_journal WHERE seq > ?`,
  ).get(seq) as [number, number, number, number | null];
  return { rows, bytes, commits, oldestAt };
}
