/** Reads the journal for replication, concurrently with the writer. */
import { engineLimits } from "../limits.ts";
import { Connection } from "../connection.ts";
import { hasJournal, type JournalHead, readConfirmed, readHead } from "./history_head.ts";
import type { JournalRow } from "./journal_row.ts";

/** Journal contents at one moment. */
export interface JournalPart {
  /** Position of the history; `null` without a journal. */
  readonly head: JournalHead | null;
  /** The newest confirmed row, or the row before the generation's first; `null` without a journal. */
  readonly confirmed: { readonly seq: number; readonly ts: number; readonly sum: string } | null;
  /** The next rows in order, up to `journalCharsRead` characters but at least one. */
  readonly rows: readonly JournalRow[];
  /** All rows that follow, including `rows`. */
  readonly pending: PendingRows;
}

export interface JournalReader extends Disposable {
  /** Reads what follows row `seq`. */
  read(seq: number): JournalPart;
}

export interface PendingRows {
  readonly rows: number;
  /** UTF-8 bytes of their bodies. */
  readonly bytes: number;
  readonly commits: number;
  /** ms since the epoch; `null` without rows. */
  readonly oldestAt: number | null;
}

/** Opens an existing database. Throws an `UnusableDatabaseError`. */
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
    // Estimates how many more rows fit by the size of the previous ones.
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
