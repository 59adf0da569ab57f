/** A part of the log: some hundred thousand runs in tables of their own. Old runs leave the log by parts. */
import { logLimits } from "../../limits.ts";
import { lineLevels, runOutcomes } from "../run_record.ts";
import type { LogDatabase } from "./log_database.ts";

/** What is known of a part without looking into it. */
export interface SegmentFacts {
  rows: number;
  /** 0 while it is empty. */
  firstId: number;
  lastId: number;
  /** Earliest and latest end of a run, milliseconds since the epoch; they are told by clocks, which may be set. */
  firstAt: number;
  lastAt: number;
  /** Whether later runs in it never ended before earlier ones, by the clock. */
  sorted: boolean;
  /** When it was begun. */
  openedAt: number;
  /** Runs by the number of their function. */
  readonly functions: Map<number, number>;
  readonly outcomes: number[];
  readonly levels: number[];
}

/** SQL that makes the tables of a part. */
export function createSegmentSql(no: number): string {
  const [runs, texts] = [`runs_${no}`, `texts_${no}`];
  return `
    CREATE TABLE ${runs} (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, fn INTEGER NOT NULL,
      outcome INTEGER NOT NULL, level INTEGER NOT NULL, caller INTEGER, request INTEGER NOT NULL,
      body TEXT NOT NULL);
    CREATE INDEX ${runs}_fn ON ${runs} (fn);
    CREATE INDEX ${runs}_request ON ${runs} (request);
    CREATE INDEX ${runs}_caller ON ${runs} (caller) WHERE caller IS NOT NULL;
    CREATE INDEX ${runs}_outcome ON ${runs} (outcome) WHERE outcome > 0;
    CREATE INDEX ${runs}_level ON ${runs} (level) WHERE level > 2;
    CREATE VIRTUAL TABLE ${texts} USING fts5 (
      text, content = '', detail = none, columnsize = 0, tokenize = 'trigram')`;
}

export class Segment {
  readonly no: number;
  readonly facts: SegmentFacts;

  constructor(no: number, facts: SegmentFacts) {
    this.no = no;
    this.facts = facts;
  }

  get runs(): string {
    return `runs_${this.no}`;
  }

  get texts(): string {
    return `texts_${this.no}`;
  }

  /** Makes the tables of a new part. In a transaction. */
  static create(database: LogDatabase, no: number, openedAt: number): Segment {
    const segment = new Segment(no, emptyFacts(openedAt));
    database.execute(createSegmentSql(no));
    segment.save(database);
    return segment;
  }

  /** A part that is there, with what was known of it when it was last saved. */
  static read(no: number, facts: string): Segment {
    const { functions, ...rest } = JSON.parse(facts);
    return new Segment(no, { ...rest, functions: new Map(functions) });
  }

  /** Counts anew: facts are saved when a part is complete, so those of the last one are older than its rows. */
  recount(database: LogDatabase): void {
    const { facts, runs } = this;
    const [row] = database.all(
      `SELECT count(*), coalesce(min(id), 0), coalesce(max(id), 0), coalesce(min(at), 0), coalesce(max(at), 0) FROM ${runs}`,
    );
    const [rows, firstId, lastId, firstAt, lastAt] = row as number[];
    Object.assign(facts, { rows, firstId, lastId, firstAt, lastAt });
    facts.sorted = database.value(
      `SELECT 1 FROM (SELECT at, lag(at) OVER (ORDER BY id) AS before FROM ${runs}) WHERE at < before LIMIT 1`,
    ) === undefined;
    facts.functions.clear();
    for (const [fn, count] of database.all(`SELECT fn, count(*) FROM ${runs} GROUP BY fn`)) {
      facts.functions.set(fn as number, count as number);
    }
    facts.outcomes.fill(0);
    facts.levels.fill(0);
    for (
      const [outcome, level, count] of database.all(
        `SELECT outcome, level, count(*) FROM ${runs} GROUP BY outcome, level`,
      ) as number[][]
    ) {
      facts.outcomes[outcome ?? 0] = (facts.outcomes[outcome ?? 0] ?? 0) + (count ?? 0);
      facts.levels[level ?? 0] = (facts.levels[level ?? 0] ?? 0) + (count ?? 0);
    }
  }

  /** The id from which on runs ended at or after an instant; only for a part that is sorted. */
  idAt(database: LogDatabase, instant: number): number {
    let [low, high] = [this.facts.firstId, this.facts.lastId + 1];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const at = database.value(
        `SELECT at FROM ${this.runs} WHERE id >= ? ORDER BY id LIMIT 1`,
        middle,
      ) as number;
      if (at < instant) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  save(database: LogDatabase): void {
    const { functions, ...rest } = this.facts;
    const facts = JSON.stringify({ ...rest, functions: [...functions] });
    database.run("INSERT OR REPLACE INTO segments (no, facts) VALUES (?, ?)", this.no, facts);
  }

  /** In a transaction. */
  drop(database: LogDatabase): void {
    database.forgetStatements();
    database.execute(`DROP TABLE ${this.runs}; DROP TABLE ${this.texts}`);
    database.run("DELETE FROM segments WHERE no = ?", this.no);
  }

  /** Whether the next runs should go into another part. `bytes` is what this one has come to. */
  isFull(now: number, { bytes, keepMs, bytesMax }: {
    readonly bytes: number;
    readonly keepMs: number;
    readonly bytesMax: number;
  }): boolean {
    const { rows, openedAt } = this.facts;
    if (rows === 0) return false;
    const { segmentRowsMax, segmentsMin, segmentMsMin } = logLimits;
    return rows >= segmentRowsMax || bytes >= bytesMax / segmentsMin ||
      now - openedAt >= Math.max(segmentMsMin, keepMs / segmentsMin);
  }
}

function emptyFacts(openedAt: number): SegmentFacts {
  return {
    rows: 0,
    firstId: 0,
    lastId: 0,
    firstAt: openedAt,
    lastAt: openedAt,
    openedAt,
    sorted: true,
    functions: new Map(),
    outcomes: runOutcomes.map(() => 0),
    levels: [0, ...lineLevels.map(() => 0)],
  };
}
