/** The history of commits: each is first appended, to the journal in its transaction or to a log elsewhere before it. */
import type { Connection } from "../connection.ts";
import type { RecordRun } from "../record_runs.ts";
import type { CommitEntry } from "../types.ts";
import type { CatalogState } from "./catalog_state.ts";
import { endGeneration, hasJournal, type JournalHead, moveHead, readHead } from "./history_head.ts";
import { checkFollows, type JournalRow, nextRow } from "./journal_row.ts";

export interface JournaledGroup {
  readonly tsBefore: number;
  readonly ts: number;
  readonly entries: readonly CommitEntry[];
  readonly records: readonly RecordRun[];
  readonly lastCreationTime: number;
  readonly catalog: CatalogState | null;
}

/** Returns whether a transaction changed nothing that belongs to a history. */
export function isEmpty({ entries, records, catalog }: JournaledGroup): boolean {
  return entries.length === 0 && records.length === 0 && catalog === null;
}

export interface CommitHistory {
  /** The current position; `null` if no history is kept. */
  readonly head: JournalHead | null;
  /** Whether `append` uses the entries of a group. */
  readonly usesEntries: boolean;
  /** Called before a transaction's commit. Returns the row to append to a log elsewhere first; `null` if there is none. */
  append(group: JournaledGroup): JournalRow | null;
  /** Called after the transaction's commit. */
  committed(): void;
  /** Called after the transaction's rollback. */
  discarded(): void;
}

/** A history that is stored elsewhere: a leader creates its rows, and a follower applies them. */
export class ExternalHistory implements CommitHistory {
  readonly usesEntries = true;
  readonly #connection: Connection;
  readonly #now: () => number;
  #head: JournalHead | null;
  /** Whether the open transaction applies rows, which are in the history already. */
  #follows = false;

  constructor(connection: Connection, now: () => number) {
    this.#connection = connection;
    this.#now = now;
    this.#head = hasJournal(connection) ? readHead(connection) : null;
  }

  get head(): JournalHead | null {
    return this.#head;
  }

  /** Advances to a row that was applied to a database at `ts`. @throws EngineError if it is not the next row. */
  follow(row: JournalRow, ts: number): void {
    const head = checkFollows({ head: this.#head, ts }, row);
    this.#head = { ...head, seq: row.seq, ts: row.ts, sum: row.sum };
    this.#follows = true;
  }

  append(group: JournaledGroup): JournalRow | null {
    if (this.#head === null || (isEmpty(group) && !this.#follows)) return null;
    let row: JournalRow | null = null;
    if (!this.#follows) {
      row = nextRow(this.#head, { ...group, now: this.#now });
      this.#head = { ...this.#head, seq: row.seq, ts: row.ts, sum: row.sum };
    }
    moveHead(this.#connection, this.#head);
    return row;
  }

  committed(): void {
    this.#follows = false;
  }

  discarded(): void {
    this.#follows = false;
    if (this.#head !== null) this.#head = readHead(this.#connection);
  }
}

/** No history is kept. The first change ends the one that an earlier writer kept, so that no one continues it. */
export class UnjournaledHistory implements CommitHistory {
  readonly head = null;
  readonly usesEntries = false;
  readonly #connection: Connection;
  /** Whether a history has to be ended, and whether the open transaction does so. */
  #state: "kept" | "ending" | "ended";

  constructor(connection: Connection) {
    this.#connection = connection;
    const generation = hasJournal(connection) ? readHead(connection)?.generation ?? null : null;
    this.#state = generation === null ? "ended" : "kept";
  }

  append(group: JournaledGroup): null {
    if (this.#state === "kept" && !isEmpty(group)) {
      endGeneration(this.#connection, "written");
      this.#state = "ending";
    }
    return null;
  }

  committed(): void {
    if (this.#state === "ending") this.#state = "ended";
  }

  discarded(): void {
    if (this.#state === "ending") this.#state = "kept";
  }
}
