/**
 * Replay records: the answers of mutations, kept for a while so that a mutation sent again is answered and not run.
 *
 * Three tables are used in turn. One receives new records, one is full, and the oldest is emptied in small steps once
 * its newest record is old enough; when it is empty and the first has been used for half the time, they move on by one.
 */
import { replayLimits } from "../limits.ts";
import type { Connection } from "./connection.ts";
import type { RecordKey } from "./transaction.ts";

/** SQL that makes the tables of records in a new database. */
export const CREATE_RECORDS_SQL = [0, 1, 2].map((slot) =>
  `CREATE TABLE syncline_records_${slot} (
    session TEXT NOT NULL, request INTEGER NOT NULL, principal TEXT NOT NULL, answer TEXT NOT NULL,
    PRIMARY KEY (session, request, principal)
  ) WITHOUT ROWID;`
).join("\n") + `
  CREATE TABLE syncline_record_turn (one INTEGER PRIMARY KEY CHECK (one = 1),
    slot INTEGER NOT NULL, since REAL NOT NULL, previousSince REAL NOT NULL);
  INSERT INTO syncline_record_turn VALUES (1, 0, 0, 0);`;

const SLOTS = 3;
const { recordMs, sessionsRememberedMax, recordsRemovedPerGroup, recordsRemovedPerRecord } = replayLimits;
const slotSql = Array.from({ length: SLOTS }, (_, slot) => {
  const name = `syncline_records_${slot}`;
  return {
    find: `SELECT answer FROM ${name} WHERE session = ? AND request = ? AND principal = ?`,
    newest: `SELECT max(request) FROM ${name} WHERE session = ?`,
    save: `INSERT INTO ${name} (session, request, principal, answer) VALUES (?, ?, ?, ?)`,
    remove: `DELETE FROM ${name} WHERE (session, request, principal) IN
      (SELECT session, request, principal FROM ${name} LIMIT ?+0)`,
  };
});

/** Which table receives records, since when, and since when the one before it did (ms since the epoch). */
interface Turn {
  readonly slot: number;
  readonly since: number;
  readonly previousSince: number;
}

export class Records {
  readonly #connection: Connection;
  readonly #now: () => number;
  #turn: Turn;
  /** Whether the oldest table is known to be empty. */
  #oldestEmpty = false;
  /**
   * Highest request id with a record, by session; the one that rose longest ago is forgotten first. It may be too high, after a
   * rollback, but never too low: a request above it has no record.
   */
  readonly #highest = new Map<string, number>();
  #savedInGroup = 0;

  constructor(connection: Connection, now: () => number) {
    this.#connection = connection;
    this.#now = now;
    this.#turn = this.#readTurn();
  }

  /** The answer recorded for a key, or `null`. */
  find({ sessionId, requestId, principal }: RecordKey): string | null {
    const highest = this.#highestOf(sessionId);
    if (requestId > highest) return null;
    for (let slot = 0; slot < SLOTS; slot++) {
      const row = this.#statement(slot, "find").get(sessionId, requestId, principalText(principal));
      if (row !== undefined) return row[0] as string;
    }
    return null;
  }

  /** Records an answer. */
  save({ sessionId, requestId, principal }: RecordKey, answer: string): void {
    this.#statement(this.#turn.slot, "save").run(sessionId, requestId, principalText(principal), answer);
    this.#savedInGroup++;
    const highest = this.#highestOf(sessionId);
    if (requestId > highest) this.#remember(sessionId, requestId);
  }

  /** Called before each commit: removes some old records and moves on when it is time. */
  tend(): void {
    const saved = this.#savedInGroup;
    this.#savedInGroup = 0;
    const now = this.#now();
    const { slot, since, previousSince } = this.#turn;
    // A clock set back must not keep a table in use for ever.
    if (now < since) return this.#setTurn({ slot, since: now, previousSince: Math.min(previousSince, now) });
    const oldest = (slot + 1) % SLOTS;
    if (!this.#oldestEmpty && now >= oldestExpiresAt(this.#turn)) {
      const limit = recordsRemovedPerGroup + recordsRemovedPerRecord * saved;
      this.#oldestEmpty = this.#statement(oldest, "remove").run(limit).changes < limit;
    }
    if (this.#oldestEmpty && now >= since + recordMs / 2) {
      this.#setTurn({ slot: oldest, since: now, previousSince: since });
    }
  }

  /** Called after a group was undone: what is remembered of its tables is read again. */
  forget(): void {
    this.#savedInGroup = 0;
    this.#oldestEmpty = false;
    this.#turn = this.#readTurn();
  }

  #highestOf(sessionId: string): number {
    const known = this.#highest.get(sessionId);
    if (known !== undefined) return known;
    let highest = -1;
    for (let slot = 0; slot < SLOTS; slot++) {
      const newest = this.#statement(slot, "newest").get(sessionId)?.[0];
      if (typeof newest === "number" && newest > highest) highest = newest;
    }
    this.#remember(sessionId, highest);
    return highest;
  }

  #remember(sessionId: string, highest: number): void {
    this.#highest.delete(sessionId);
    this.#highest.set(sessionId, highest);
    if (this.#highest.size <= sessionsRememberedMax) return;
    for (const oldest of this.#highest.keys()) {
      this.#highest.delete(oldest);
      return;
    }
  }

  #readTurn(): Turn {
    const row = this.#connection.statement("SELECT slot, since, previousSince FROM syncline_record_turn")
      .get();
    const [slot, since, previousSince] = row as [number, number, number];
    return { slot, since, previousSince };
  }

  #setTurn(turn: Turn): void {
    this.#connection.statement("UPDATE syncline_record_turn SET slot = ?, since = ?, previousSince = ?")
      .run(turn.slot, turn.since, turn.previousSince);
    this.#turn = turn;
    this.#oldestEmpty = false;
  }

  #statement(slot: number, name: "find" | "newest" | "save" | "remove") {
    // There are exactly as many texts as slots.
    return this.#connection.statement(slotSql[slot]?.[name] ?? "");
  }
}

/** From when on every record of the oldest table is old enough: it was used until the one before the current began. */
function oldestExpiresAt({ previousSince }: Turn): number {
  return previousSince + recordMs;
}

/** Anonymous is a principal of its own, unlike any id. */
function principalText(principal: string | null): string {
  return principal === null ? "" : `p${principal}`;
}
