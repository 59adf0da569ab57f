/** How many runs there were over time, by outcome, for the same filter as a page. */
import type { RunFilter } from "../run_filter.ts";
import { runOutcomes } from "../run_record.ts";
import type { LogStore } from "./log_store.ts";
import { classesOf, OTHER_FUNCTIONS } from "./function_names.ts";
import { checked, walk } from "./search.ts";

export interface HistogramOptions {
  readonly filter: RunFilter;
  /** Of its window, milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** Bars, of equal width. */
  readonly bars: number;
  /** When to stop, by `performance.now()`. */
  readonly deadline: number;
}

export interface Histogram {
  readonly from: number;
  readonly to: number;
  readonly barMs: number;
  /** Of each bar, oldest first, runs by outcome in the order of `outcomes`. */
  readonly bars: readonly (readonly number[])[];
  readonly outcomes: readonly string[];
  /** Runs that ended before this were not counted, because there were too many to look at; `null`: all were. */
  readonly countedFrom: number | null;
}

const MINUTE_MS = 60_000;
/** Numbers of functions, or of classes of them, whose counts are added up. */
const COUNTED_MAX = 16;
/** Rows looked at in one statement. */
const ROWS_AT_ONCE = 2_000;

export function histogramOf(store: LogStore, options: HistogramOptions): Histogram {
  const { filter, from, to, bars } = options;
  const simple = filter.text === undefined && filter.caller === undefined && filter.request === undefined;
  const width = Math.max(1, Math.ceil((to - from) / bars));
  const counted = classesOf(filter) ?? [...store.names.admitted(filter) ?? []];
  // Counts by minute are there for what a bar of whole minutes asks of some functions, or of a kind of them.
  if (simple && width >= MINUTE_MS && counted.length <= COUNTED_MAX) {
    return byMinutes(store, { ...options, counted });
  }
  return byRuns(store, { ...options, width });
}

function byMinutes(
  store: LogStore,
  { filter, from, to, bars, counted }: HistogramOptions & { readonly counted: readonly number[] },
): Histogram {
  const start = Math.floor(from / MINUTE_MS);
  const end = Math.ceil(to / MINUTE_MS);
  const width = Math.max(1, Math.ceil((end - start) / bars));
  const counts = emptyBars(Math.ceil((end - start) / width));
  const conditions = [`fn IN (${counted.join(", ")})`, "minute >= ?", "minute < ?"];
  if (filter.outcomes !== undefined) conditions.push(`outcome IN (${filter.outcomes.join(", ")})`);
  if (filter.level !== undefined) conditions.push(`level >= ${filter.level}`);
  const rows = store.database.all(
    `SELECT (minute - ${start}) / ${width}, outcome, sum(runs) FROM minutes WHERE ${conditions.join(" AND ")}
     GROUP BY 1, 2`,
    ...[start, end],
  );
  for (const [bar, outcome, runs] of rows as [number, number, number][]) add(counts, { bar, outcome, runs });
  return {
    from: start * MINUTE_MS,
    to: (start + counts.length * width) * MINUTE_MS,
    barMs: width * MINUTE_MS,
    bars: counts,
    outcomes: runOutcomes,
    countedFrom: null,
  };
}

function byRuns(
  store: LogStore,
  { filter, from, to, bars, width, deadline }: HistogramOptions & { readonly width: number },
): Histogram {
  const counts = emptyBars(bars);
  const window = { ...filter, from: Math.max(from, filter.from ?? from), to: Math.min(to, filter.to ?? to) };
  const verify = filter.text !== undefined || filter.caller !== undefined ||
    store.names.admitted(filter)?.has(OTHER_FUNCTIONS) === true;
  let countedFrom: number | null = null;
  let last = to;
  for (const { candidates, next } of walk(store, { filter: window, limit: ROWS_AT_ONCE })) {
    for (const candidate of candidates) {
      if (verify && checked(store, candidate, window) === null) continue;
      last = candidate.at;
      add(counts, { bar: Math.floor((last - from) / width), outcome: candidate.outcome, runs: 1 });
    }
    if (next !== null && performance.now() >= deadline) {
      countedFrom = last;
      break;
    }
  }
  return { from, to: from + bars * width, barMs: width, bars: counts, outcomes: runOutcomes, countedFrom };
}

function emptyBars(count: number): number[][] {
  return Array.from({ length: count }, () => runOutcomes.map(() => 0));
}

function add(
  counts: number[][],
  { bar, outcome, runs }: { readonly bar: number; readonly outcome: number; readonly runs: number },
): void {
  const counted = counts[bar];
  if (counted !== undefined) counted[outcome] = (counted[outcome] ?? 0) + runs;
}
