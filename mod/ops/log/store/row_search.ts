/** How the rows of runs that failed or said something are searched: along the index that leaves least to look at. */
import { logLimits } from "../../limits.ts";
import type { RunFilter } from "../run_filter.ts";
import { callerNumber } from "./caller_number.ts";
import type { LogStore } from "./log_store.ts";
import type { Row } from "./log_database.ts";
import type { PartStep, PartWalk } from "./part_walk.ts";
import { type Segment, sumFrom, sumOf } from "./segment.ts";

/** A part that is expected to give fewer candidates than this is walked in one step. */
const FEW_ROWS = 4_096;
/** Rows with a text are counted up to here before it is decided how a part is walked. */
const TEXT_ROWS_COUNTED = 256;
/** For texts that more rows have, when other parts of the filter would let few of them through. */
const TEXT_ROWS_GUESS = 8_192;
/** Rows of a caller are not counted beforehand. */
const CALLER_ROWS_GUESS = 512;
/** Numbers of functions that may stand in a statement; more are looked at one by one. */
const FUNCTIONS_LISTED_MAX = 64;
/** Shortest text that the index of trigrams can find. */
const TRIGRAM_CHARS = 3;
/** Trigrams of a text that are looked up; the rest is checked in what they find. */
const TRIGRAMS_MAX = 12;

type Condition = readonly [sql: string, parameters: readonly (string | number)[]];

/** How one part is walked. */
interface Plan {
  /** Table and index, up to and without WHERE. */
  readonly from: string;
  readonly conditions: readonly Condition[];
  /** Rows that the index is expected to give. */
  readonly rows: number;
}

/** A run that failed or said something, as its row has it. */
export interface RowRun {
  readonly id: number;
  readonly at: number;
  readonly outcome: number;
  readonly row: Row;
}

/** Whether all runs that pass have a row of their own. One request has few runs, which packs tell faster. */
export function allHaveRows({ text, level, outcomes, request }: RunFilter): boolean {
  if (request !== undefined) return false;
  return text !== undefined || level !== undefined || outcomes?.includes(0) === false;
}

/** The rows that pass, but for their text and their caller's name, newest first. */
export function* walkRows(store: LogStore, given: PartWalk): Generator<PartStep<RowRun>> {
  const plan = planFor(store, given);
  for (const [low, high] of stepsOf(plan, given)) {
    for (let upTo = high;;) {
      const rows = step(store, { plan, low, high: upTo, limit: given.limit });
      const runs = rows.map((row) => ({
        id: row[0] as number,
        at: row[1] as number,
        outcome: row[3] as number,
        row,
      }));
      const last = runs.at(-1)?.id;
      const full = rows.length >= given.limit && last !== undefined;
      yield { runs, low: full ? last : low };
      if (!full) break;
      upTo = last - 1;
    }
  }
}

const COLUMNS = "r.id, r.at, r.fn, r.outcome, r.level, r.request, r.body";

function step(
  store: LogStore,
  { plan, low, high, limit }: {
    readonly plan: Plan;
    readonly low: number;
    readonly high: number;
    readonly limit: number;
  },
): Row[] {
  const range = plan.from.includes(" t ") ? "t.rowid" : "r.id";
  const where = [...plan.conditions.map(([sql]) => sql), `${range} BETWEEN ? AND ?`].join(" AND ");
  return store.database.all(
    `SELECT ${COLUMNS} FROM ${plan.from} WHERE ${where} ORDER BY ${range} DESC LIMIT ?`,
    ...plan.conditions.flatMap(([, parameters]) => [...parameters]),
    ...[low, high, limit],
  );
}

/** The row of a run; `undefined` when it has none. */
export function rowOf({ database }: LogStore, { runs }: Segment, id: number): Row | undefined {
  return database.all(`SELECT ${COLUMNS} FROM ${runs} r WHERE r.id = ?`, id)[0];
}

function planFor(
  store: LogStore,
  { segment, filter, functions }: PartWalk,
): Plan {
  const { facts, runs, texts } = segment;
  const conditions = conditionsOf(filter, functions);
  const along = (index: string | null, rows: number): Plan => ({
    from: index === null ? `${runs} r NOT INDEXED` : `${runs} r INDEXED BY ${runs}_${index}`,
    conditions,
    rows,
  });
  const plans = [along(null, facts.rows)];
  if (functions !== null && functions.size <= FUNCTIONS_LISTED_MAX) {
    const rows = [...functions].reduce((sum, fn) => sum + (facts.functions.get(fn) ?? 0), 0);
    plans.push(along("fn", rows));
  }
  if (typeof filter.caller === "string") plans.push(along("caller", CALLER_ROWS_GUESS));
  if (filter.outcomes !== undefined && !filter.outcomes.includes(0)) {
    plans.push({
      ...along("outcome", sumOf(facts.outcomes, filter.outcomes)),
      conditions: [...conditions, ["r.outcome > 0", []]],
    });
  }
  if (filter.level !== undefined && filter.level > 2) {
    plans.push({
      ...along("level", sumFrom(facts.levels, filter.level)),
      conditions: [...conditions, ["r.level > 2", []]],
    });
  }
  const query = filter.text === undefined ? null : trigramQuery(filter.text);
  if (query !== null) {
    plans.push({
      from: `${texts} t CROSS JOIN ${runs} r ON r.id = t.rowid`,
      conditions: [[`t.${texts} MATCH ?`, [query]], ...conditions],
      rows: conditions.length === 0 ? 0 : textRows(store, segment, query),
    });
  }
  return plans.reduce((best, plan) => plan.rows < best.rows ? plan : best);
}

/** How many rows have a text, as far as that is worth counting. */
function textRows({ database }: LogStore, { texts }: Segment, query: string): number {
  const counted = database.value(
    `SELECT count(*) FROM (SELECT 1 FROM ${texts} WHERE ${texts} MATCH ? LIMIT ${TEXT_ROWS_COUNTED})`,
    query,
  ) as number;
  return counted < TEXT_ROWS_COUNTED ? counted : TEXT_ROWS_GUESS;
}

function conditionsOf(filter: RunFilter, functions: ReadonlySet<number> | null): Condition[] {
  const conditions: Condition[] = [];
  if (functions !== null) {
    // Written out, so that few of them are found in the index one after the other; numbers need no quoting.
    const listed = [...functions].join(", ");
    conditions.push([functions.size === 1 ? `r.fn = ${listed}` : `r.fn IN (${listed})`, []]);
  }
  if (filter.outcomes !== undefined) conditions.push([`r.outcome IN (${filter.outcomes.join(", ")})`, []]);
  if (filter.level !== undefined) conditions.push(["r.level >= ?", [filter.level]]);
  if (filter.from !== undefined) conditions.push(["r.at >= ?", [filter.from]]);
  if (filter.to !== undefined) conditions.push(["r.at < ?", [filter.to]]);
  if (filter.caller === null) conditions.push(["r.caller IS NULL", []]);
  else if (filter.caller !== undefined) conditions.push(["r.caller = ?", [callerNumber(filter.caller)]]);
  return conditions;
}

/** Ids in ranges, newest first: one when few rows are to be expected. */
function stepsOf({ rows }: Plan, { low, high }: PartWalk): (readonly [low: number, high: number])[] {
  if (rows <= FEW_ROWS) return low > high ? [] : [[low, high]];
  const steps: [number, number][] = [];
  for (let end = high; end >= low; end -= logLimits.searchStepRows) {
    steps.push([Math.max(low, end - logLimits.searchStepRows + 1), end]);
  }
  return steps;
}

/** A query for all rows that have each trigram of a text; `null` for one that is too short. */
export function trigramQuery(text: string): string | null {
  const chars = [...text];
  if (chars.length < TRIGRAM_CHARS) return null;
  const trigrams = new Set<string>();
  const apart = Math.max(1, Math.floor((chars.length - TRIGRAM_CHARS) / TRIGRAMS_MAX));
  for (let start = 0; start <= chars.length - TRIGRAM_CHARS; start += apart) {
    trigrams.add(chars.slice(start, start + TRIGRAM_CHARS).join(""));
  }
  return [...trigrams].map((trigram) => `"${trigram.replaceAll('"', '""')}"`).join(" AND ");
}
