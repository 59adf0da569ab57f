/**
 * Replay records: the answers of mutations, kept for a while so that a repeated mutation gets its answer again and does
 * not run. They are written with their group's commit, in runs (record_runs.ts).
 *
 * Three tables rotate. The current one receives new records, the previous one is full, and the oldest is emptied in
 * small steps once its records have expired. When it is empty and the current one has been in use for half the
 * lifetime, the tables rotate.
 */
import { replayLimits } from "./limits.ts";
import type { Connection } from "./connection.ts";
import {
  addAnswer,
  addRun,
  callerName,
  lastRequestId,
  newCaller,
  pendingAnswer,
  principalText,
  type RecordCaller,
  type RecordRun,
  takeRuns,
} from "./record_runs.ts";
import type { RecordKey } from "./types.ts";

export const CREATE_RECORDS_SQL = [0, 1, 2].map((slot) =>
  `CREATE TABLE syncline_records_${slot} (
    session TEXT NOT NULL, principal TEXT NOT NULL, newest INTEGER NOT NULL, oldest INTEGER NOT NULL,
    answers TEXT NOT NULL, PRIMARY KEY (session, principal, newest)
  ) WITHOUT ROWID;`
).join("\n") + `
  CREATE TABLE syncline_record_turn (one INTEGER PRIMARY KEY CHECK (one = 1),
    slot INTEGER NOT NULL, since REAL NOT NULL, previousSince REAL NOT NULL);
  INSERT INTO syncline_record_turn VALUES (1, 0, 0, 0);`;

const SLOTS = 3;
const { recordMs, sessionsRememberedMax, runsRemovedPerGroup, runsRemovedPerRun } = replayLimits;
const READ_TURN_SQL = "SELECT slot, since, previousSince FROM syncline_record_turn";
/** Separates the answers of a run; no answer contains it. */
const SEPARATOR = "\n";
const slotSql = Array.from({ length: SLOTS }, (_, slot) => {
  const name = `syncline_records_${slot}`;
  return {
    find: `SELECT oldest, answers FROM ${name} WHERE session = ? AND principal = ? AND newest >= ?
      ORDER BY newest LIMIT 1`,
    newest: `SELECT max(newest) FROM ${name} WHERE session = ? AND principal = ?`,
    save: `INSERT INTO ${name} (session, principal, newest, oldest, answers) VALUES (?, ?, ?, ?, ?)`,
    remove: `DELETE FROM ${name} WHERE (session, principal, newest) IN
      (SELECT session, principal, newest FROM ${name} LIMIT ?+0)`,
  };
});

/** The current table, its start, and the start of the previous one (ms since the epoch). */
interface Rotation {
  readonly slot: number;
  readonly since: number;
  readonly previousSince: number;
}

export class ReplayRecords {
  readonly #connection: Connection;
  readonly #now: () => number;
  #rotation: Rotation;
  #oldestEmpty = false;
  /** By session and principal, in order of the last write. */
  readonly #callers = new Map<string, RecordCaller>();
  /** Callers with unwritten records, in order of the first one. */
  #saving: RecordCaller[] = [];
  /** The last lookup: a mutation asks for its key twice. */
  #lastLookup: { readonly key: RecordKey; readonly caller: RecordCaller } | null = null;

  constructor(connection: Connection, now: () => number) {
    this.#connection = connection;
    this.#now = now;
    this.#rotation = this.#readRotation();
  }

  /** Returns the recorded answer of a key, or `null`. */
  find(key: RecordKey): string | null {
    const { sessionId, requestId, principal } = key;
    const caller = this.#callerOf(key);
    if (requestId > this.#highestOf(caller)) return null;
    const unwritten = pendingAnswer(caller, requestId);
    if (unwritten !== null) return unwritten;
    for (let slot = 0; slot < SLOTS; slot++) {
      const row = this.#statement(slot, "find").get(sessionId, principalText(principal), requestId);
      const [oldest, answers] = (row ?? [Infinity, ""]) as [number, string];
      if (oldest <= requestId) return answers.split(SEPARATOR)[requestId - oldest] ?? null;
    }
    return null;
  }

  /** Records an answer, one line, for a new key. `ts` is the newest commit. */
  save(key: RecordKey, { answer, ts }: { readonly answer: string; readonly ts: number }): void {
    const { requestId } = key;
    const caller = this.#callerOf(key);
    if (requestId > this.#highestOf(caller)) caller.highest = requestId;
    if (caller.runs.length === 0) this.#saving.push(caller);
    addAnswer(caller, { requestId, answer, ts });
  }

  /** Records the answers of a journal row. */
  saveRun(run: RecordRun): void {
    const caller = this.#known(callerName(run.session, run.principal), () => ({
      session: run.session,
      principal: run.principal,
      highest: null,
      runs: [],
    }));
    if (caller.highest !== null && caller.highest < lastRequestId(run)) caller.highest = lastRequestId(run);
    if (caller.runs.length === 0) this.#saving.push(caller);
    addRun(caller, run);
  }

  /** Called before each commit: writes records (returned), removes some expired ones, rotates tables when due. */
  write(): readonly RecordRun[] {
    const runs = this.#take();
    for (const run of runs) {
      const { session, principal, oldest, answers } = run;
      this.#statement(this.#rotation.slot, "save")
        .run(session, principal, lastRequestId(run), oldest, answers.join(SEPARATOR));
    }
    this.#rotate(runs.length);
    return runs;
  }

  /** Called after a rollback, or after another writer has written: drops all state in memory. */
  forget(): void {
    this.#take();
    this.#oldestEmpty = false;
    this.#rotation = this.#readRotation();
  }

  #rotate(saved: number): void {
    const now = this.#now();
    const { slot, since, previousSince } = this.#rotation;
    // A clock that is set back must not delay the rotation forever.
    if (now < since) {
      return this.#setRotation({ slot, since: now, previousSince: Math.min(previousSince, now) });
    }
    const oldest = (slot + 1) % SLOTS;
    if (!this.#oldestEmpty && now > oldestExpiresAt(this.#rotation)) {
      const limit = runsRemovedPerGroup + runsRemovedPerRun * saved;
      this.#oldestEmpty = this.#statement(oldest, "remove").run(limit).changes < limit;
    }
    if (this.#oldestEmpty && now >= since + recordMs / 2) {
      this.#setRotation({ slot: oldest, since: now, previousSince: since });
    }
  }

  #callerOf(key: RecordKey): RecordCaller {
    if (this.#lastLookup?.key === key) return this.#lastLookup.caller;
    const name = callerName(key.sessionId, principalText(key.principal));
    const caller = this.#known(name, () => newCaller(key));
    this.#lastLookup = { key, caller };
    return caller;
  }

  #known(name: string, make: () => RecordCaller): RecordCaller {
    const known = this.#callers.get(name);
    if (known !== undefined) return known;
    this.#forgetOldest(sessionsRememberedMax - 1);
    const caller = make();
    this.#callers.set(name, caller);
    return caller;
  }

  #highestOf(caller: RecordCaller): number {
    if (caller.highest !== null) return caller.highest;
    let highest = -Infinity;
    for (let slot = 0; slot < SLOTS; slot++) {
      const newest = this.#statement(slot, "newest").get(caller.session, caller.principal)?.[0];
      if (typeof newest === "number" && newest > highest) highest = newest;
    }
    for (const run of caller.runs) highest = Math.max(highest, lastRequestId(run));
    caller.highest = highest;
    return highest;
  }

  /** Removes and returns unwritten records and moves their callers to the end of the order. */
  #take(): readonly RecordRun[] {
    const taken: RecordRun[] = [];
    for (const caller of this.#saving) {
      for (const run of takeRuns(caller)) taken.push(run);
      const name = callerName(caller.session, caller.principal);
      this.#callers.delete(name);
      this.#callers.set(name, caller);
    }
    this.#saving = [];
    this.#lastLookup = null;
    this.#forgetOldest(sessionsRememberedMax);
    return taken;
  }

  /** Evicts callers beyond a number, but none with unwritten records. */
  #forgetOldest(countMax: number): void {
    for (const [name, { runs }] of this.#callers) {
      if (this.#callers.size <= countMax || runs.length > 0) return;
      this.#callers.delete(name);
    }
  }

  #readRotation(): Rotation {
    const row = this.#connection.statement(READ_TURN_SQL).get();
    const [slot, since, previousSince] = row as [number, number, number];
    return { slot, since, previousSince };
  }

  #setRotation(turn: Rotation): void {
    this.#connection.statement("UPDATE syncline_record_turn SET slot = ?, since = ?, previousSince = ?")
      .run(turn.slot, turn.since, turn.previousSince);
    this.#rotation = turn;
    this.#oldestEmpty = false;
  }

  #statement(slot: number, name: "find" | "newest" | "save" | "remove") {
    // There is one entry for each slot.
    return this.#connection.statement(slotSql[slot]?.[name] ?? "");
  }
}

/** When all records of the oldest table have expired: it was in use until the previous one started. */
function oldestExpiresAt({ previousSince }: Rotation): number {
  return previousSince + recordMs;
}
