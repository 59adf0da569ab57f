/**
 * Finds runs, newest first. Each part of the log is walked along the index that leaves least to look at, in steps, and the
 * walk ends when its time is over: then it says how far back it came, and the next page goes on there.
 */
import { logLimits } from "../../limits.ts";
import { hasText, type RunFilter } from "../run_filter.ts";
import { type RunRecord, searchedText } from "../run_record.ts";
import { callerNumber } from "./caller_number.ts";
import { OTHER_FUNCTIONS } from "./function_names.ts";
import type { LogStore } from "./log_store.ts";
import type { Row } from "./log_database.ts";
import type { Segment } from "./segment.ts";

export interface FoundRun {
  readonly id: number;
  readonly record: RunRecord;
}

export interface SearchOptions {
  readonly filter: RunFilter;
  /** Only runs with smaller ids: where the last page ended. */
  readonly before?: number;
  /** Only runs with larger ids. */
  readonly after?: number;
  readonly limit: number;
  /** When to stop, by `performance.now()`. */
  readonly deadline: number;
}

export interface SearchResult {
  readonly runs: readonly FoundRun[];
  /** `before` of the next page; `null` when there is nothing more to look at. */
  readonly next: number | null;
  /** Whether the search was ended by the clock: then runs between the last one and `next` were looked at too. */
  readonly cut: boolean;
}

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

/** The newest runs that pass. */
export function searchRuns(store: LogStore, options: SearchOptions): SearchResult {
  const { limit } = options;
  const runs: FoundRun[] = [];
  for (const step of walk(store, options)) {
    for (const row of step.rows) {
      const found = checked(store, row, options.filter);
      if (found === null) continue;
      runs.push(found);
      if (runs.length >= limit) return { runs, next: found.id, cut: false };
    }
    if (step.next !== null && performance.now() >= options.deadline) {
      return { runs, next: step.next, cut: true };
    }
  }
  return { runs, next: null, cut: false };
}

/** Rows of a step of the walk; `next` is where the next one begins, `null` after the last. */
export interface WalkStep {
  readonly rows: readonly Row[];
  readonly next: number | null;
}

const COLUMNS = "r.id, r.at, r.fn, r.outcome, r.level, r.request, r.body";

/** All rows that may pass, newest first. */
export function* walk(
  store: LogStore,
  { filter, before = Infinity, after = 0, limit }: Omit<SearchOptions, "deadline">,
): Generator<WalkStep> {
  const functions = store.names.admitted(filter);
  if (functions?.size === 0) return;
  const segments = store.segments.toReversed();
  for (const [position, segment] of segments.entries()) {
    const { facts } = segment;
    if (facts.rows === 0 || facts.firstId >= before || !mayHold(segment, { filter, functions })) continue;
    if (facts.lastId <= after) return;
    const plan = planFor(store, { segment, filter, functions });
    const steps = stepsOf(store, { segment, plan, before, after, filter });
    for (const [number, [low, high]] of steps.entries()) {
      let upTo = high;
      for (;;) {
        const rows = step(store, { plan, low, high: upTo, limit });
        const last = rows.at(-1)?.[0] as number | undefined;
        const full = rows.length >= limit && last !== undefined;
        const lastStep = number === steps.length - 1 && position === segments.length - 1;
        yield { rows, next: full ? last : lastStep ? null : low };
        if (!full) break;
        upTo = last - 1;
      }
    }
  }
}

/** The run of a row, if the filter lets it through. */
export function checked(store: LogStore, row: Row, filter: RunFilter): FoundRun | null {
  const [id, at, fn, outcome, level, request, body] = row as [
    number,
    number,
    number,
    number,
    number,
    number,
    string,
  ];
  const [caller, ...rest] = JSON.parse(body) as [string | null, ...unknown[]];
  if (filter.caller !== undefined && filter.caller !== caller) return null;
  const name = fn === OTHER_FUNCTIONS
    ? { path: rest[9] as string, kind: rest[10] as number }
    : store.names.named(fn) ?? { path: "?", kind: 0 };
  const record = [
    at,
    name.path,
    name.kind,
    caller,
    outcome,
    level,
    request,
    ...rest.slice(0, 9),
  ] as unknown as RunRecord;
  if (filter.text !== undefined && !hasText(filter.text, searchedText(record[14], record[15]))) return null;
  return { id, record };
}

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

/** Whether a part can hold anything that passes, by what is known of it. */
function mayHold(
  { facts }: Segment,
  { filter, functions }: { readonly filter: RunFilter; readonly functions: ReadonlySet<number> | null },
): boolean {
  const { from = -Infinity, to = Infinity, outcomes, level } = filter;
  if (facts.lastAt < from || facts.firstAt >= to) return false;
  if (outcomes !== undefined && sumOf(facts.outcomes, outcomes) === 0) return false;
  if (level !== undefined && sumFrom(facts.levels, level) === 0) return false;
  return functions === null || [...functions].some((fn) => facts.functions.has(fn));
}

function planFor(
  store: LogStore,
  { segment, filter, functions }: {
    readonly segment: Segment;
    readonly filter: RunFilter;
    readonly functions: ReadonlySet<number> | null;
  },
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
  if (filter.request !== undefined) plans.push(along("request", 1));
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
  if (filter.request !== undefined) conditions.push(["r.request = ?", [filter.request]]);
  if (filter.caller === null) conditions.push(["r.caller IS NULL", []]);
  else if (filter.caller !== undefined) conditions.push(["r.caller = ?", [callerNumber(filter.caller)]]);
  return conditions;
}

/** The part's ids in ranges, newest first: one when few rows are to be expected. */
function stepsOf(
  { database }: LogStore,
  { segment, plan, before, after, filter: { from, to } }: {
    readonly segment: Segment;
    readonly plan: Plan;
    readonly before: number;
    readonly after: number;
    readonly filter: RunFilter;
  },
): (readonly [low: number, high: number])[] {
  const { facts } = segment;
  let lowest = Math.max(facts.firstId, after + 1);
  let highest = Math.min(facts.lastId, before - 1);
  if (facts.sorted && from !== undefined && from > facts.firstAt) {
    lowest = Math.max(lowest, segment.idAt(database, from));
  }
  if (facts.sorted && to !== undefined && to <= facts.lastAt) {
    highest = Math.min(highest, segment.idAt(database, to) - 1);
  }
  if (plan.rows <= FEW_ROWS) return lowest > highest ? [] : [[lowest, highest]];
  const steps: [number, number][] = [];
  for (let high = highest; high >= lowest; high -= logLimits.searchStepRows) {
    steps.push([Math.max(lowest, high - logLimits.searchStepRows + 1), high]);
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

function sumOf(counts: readonly number[], positions: readonly number[]): number {
  return positions.reduce((sum, position) => sum + (counts[position] ?? 0), 0);
}

function sumFrom(counts: readonly number[], first: number): number {
  return counts.slice(first).reduce((sum, count) => sum + count, 0);
}
