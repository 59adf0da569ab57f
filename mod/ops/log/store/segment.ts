/**
 * A part of the log: some hundred thousand runs in tables of their own. Old runs leave the log by parts. All runs stand in
 * packs; those that failed or said something also have a row of their own, with indexes.
 */
import { logLimits } from "../../limits.ts";
import { lineLevels, runOutcomes } from "../run_record.ts";
import type { LogDatabase } from "./log_database.ts";
import type { RunFilter } from "../run_filter.ts";
import { column } from "../packs/run_pack.ts";
import { createPacksSql, type KeptPack, PackTable } from "./pack_table.ts";

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
  return `${createPacksSql(no)};
    CREATE TABLE ${runs} (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, fn INTEGER NOT NULL,
      outcome INTEGER NOT NULL, level INTEGER NOT NULL, caller INTEGER, request INTEGER NOT NULL,
      body TEXT NOT NULL);
    CREATE INDEX ${runs}_fn ON ${runs} (fn);
    CREATE INDEX ${runs}_caller ON ${runs} (caller) WHERE caller IS NOT NULL;
    CREATE INDEX ${runs}_outcome ON ${runs} (outcome) WHERE outcome > 0;
    CREATE INDEX ${runs}_level ON ${runs} (level) WHERE level > 2;
    CREATE VIRTUAL TABLE ${texts} USING fts5 (
      text, content = '', detail = none, columnsize = 0, tokenize = 'trigram')`;
}

export class Segment {
  readonly no: number;
  readonly facts: SegmentFacts;
  readonly packs: PackTable;

  constructor(no: number, facts: SegmentFacts) {
    this.no = no;
    this.packs = new PackTable(no);
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

  /** Counts anew: facts are saved when a part is complete, so those of the last one are older than its runs. */
  recount(database: LogDatabase): void {
    const { facts } = this;
    Object.assign(facts, { ...emptyFacts(facts.openedAt), functions: facts.functions });
    facts.functions.clear();
    for (const pack of this.packs.all(database)) this.count(pack);
  }

  /** Counts the runs of a pack. */
  count({ first, count, functions, columns }: KeptPack): void {
    const { facts } = this;
    if (facts.rows === 0) Object.assign(facts, { firstId: first, firstAt: Infinity, lastAt: -Infinity });
    facts.rows += count;
    facts.lastId = first + count - 1;
    const counts = functions.map(() => 0);
    let last = facts.lastAt;
    for (let row = 0; row < count; row++) {
      const at = columns.at(column.at, row);
      if (at < last) facts.sorted = false;
      last = at;
      facts.firstAt = Math.min(facts.firstAt, at);
      facts.lastAt = Math.max(facts.lastAt, at);
      addOne(counts, columns.at(column.fn, row));
      addOne(facts.outcomes, columns.at(column.outcome, row));
      addOne(facts.levels, columns.at(column.level, row));
    }
    for (const [position, fn] of functions.entries()) {
      facts.functions.set(fn, (facts.functions.get(fn) ?? 0) + (counts[position] ?? 0));
    }
  }

  /** Whether it can hold anything that passes, by what is known of it. */
  mayHold(
    { from = -Infinity, to = Infinity, outcomes, level }: RunFilter,
    functions: ReadonlySet<number> | null,
  ): boolean {
    const { facts } = this;
    if (facts.rows === 0 || facts.lastAt < from || facts.firstAt >= to) return false;
    if (outcomes !== undefined && sumOf(facts.outcomes, outcomes) === 0) return false;
    if (level !== undefined && sumFrom(facts.levels, level) === 0) return false;
    return functions === null || [...functions].some((fn) => facts.functions.has(fn));
  }

  /** The ids between which runs may have ended within a time: all of them when the clock did not only go on. */
  idsWithin(
    database: LogDatabase,
    { from, to }: Pick<RunFilter, "from" | "to">,
  ): readonly [low: number, high: number] {
    const { facts, packs } = this;
    let [low, high] = [facts.firstId, facts.lastId];
    if (!facts.sorted) return [low, high];
    if (from !== undefined && from > facts.firstAt) low = packs.firstSince(database, from) ?? high + 1;
    if (to !== undefined && to <= facts.lastAt) high = packs.lastBefore(database, to) ?? low - 1;
    return [low, high];
  }

  save(database: LogDatabase): void {
    const { functions, ...rest } = this.facts;
    const facts = JSON.stringify({ ...rest, functions: [...functions] });
    database.run("INSERT OR REPLACE INTO segments (no, facts) VALUES (?, ?)", this.no, facts);
  }

  /** In a transaction. */
  drop(database: LogDatabase): void {
    database.forgetStatements();
    database.execute(`DROP TABLE ${this.runs}; DROP TABLE ${this.texts}; DROP TABLE packs_${this.no}`);
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

function addOne(counts: number[], at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
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

export function sumOf(counts: readonly number[], positions: readonly number[]): number {
  return positions.reduce((sum, position) => sum + (counts[position] ?? 0), 0);
}

export function sumFrom(counts: readonly number[], first: number): number {
  return counts.slice(first).reduce((sum, count) => sum + count, 0);
}
