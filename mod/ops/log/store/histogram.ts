/** Counts the runs of a filter over time, by outcome. */
import type { RunFilter } from "../run_filter.ts";
import { runOutcomes } from "../run_record.ts";
import type { LogStore } from "./log_store.ts";
import { countedConditions, type CountStep, countSteps, searchSteps } from "./search.ts";

export interface HistogramOptions {
  readonly filter: RunFilter;
  /** Start of the window, milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** Number of bars, of equal width. */
  readonly bars: number;
  /** By `performance.now()`. */
  readonly deadline: number;
}

export interface Histogram {
  readonly from: number;
  readonly to: number;
  readonly barMs: number;
  /** Runs of each bar by outcome, in the order of `outcomes`; oldest first. */
  readonly bars: readonly (readonly number[])[];
  readonly outcomes: readonly string[];
  /** Earlier runs were not counted, because the time was over; `null` if all were counted. */
  readonly countedFrom: number | null;
}

const MINUTE_MS = 60_000;
/** Minutes counted by the first statement; the number doubles. */
const MINUTES_FIRST = 64;
/** Runs read by one statement. */
const RUNS_AT_ONCE = 1_000;

/** Filters that the counts by minute do not have. */
const NOT_COUNTED = ["text", "caller", "request", "minMs", "version"] as const;

export function histogramOf(store: LogStore, options: HistogramOptions): Histogram {
  const { filter, from, to, bars } = options;
  const width = Math.max(1, Math.ceil((to - from) / bars));
  const isCounted = NOT_COUNTED.every((name) => filter[name] === undefined) && width >= MINUTE_MS;
  return isCounted ? byMinutes(store, options) : byRuns(store, { ...options, width });
}

/** Sums up the counts by minute. */
function byMinutes(
  { database }: LogStore,
  { filter, from, to, bars, deadline }: HistogramOptions,
): Histogram {
  const start = Math.floor(from / MINUTE_MS);
  const end = Math.ceil(to / MINUTE_MS);
  const width = barMinutes(end - start, bars);
  const counts = emptyBars(Math.ceil((end - start) / width));
  // The last bar ends with the window, so that none is in the future. The first one may begin before the window.
  const first = end - counts.length * width;
  const conditions = countedConditions(filter);
  const where = ["minute >= ?", "minute < ?", ...conditions.map(([sql]) => sql)].join(" AND ");
  const parameters = conditions.flatMap(([, parameters]) => parameters);
  const sql =
    `SELECT (minute - ${first}) / ${width}, outcome, sum(runs) FROM counts WHERE ${where} GROUP BY 1, 2`;
  let high = end;
  for (let span = MINUTES_FIRST; high > start; span *= 2) {
    const low = Math.max(start, high - span);
    const rows = database.all(sql, low, high, ...parameters) as unknown as [number, number, number][];
    for (const [bar, outcome, runs] of rows) add(counts, { bar, outcome, runs });
    high = low;
    if (performance.now() >= deadline) break;
  }
  return {
    from: first * MINUTE_MS,
    to: end * MINUTE_MS,
    barMs: width * MINUTE_MS,
    bars: counts,
    outcomes: runOutcomes,
    countedFrom: high > start ? high * MINUTE_MS : null,
  };
}

/** Returns the width of bars, in minutes, which exceed a window the least. At least two thirds of the bars are used. */
function barMinutes(minutes: number, bars: number): number {
  const fewest = Math.ceil(2 * bars / 3);
  const widths = Array.from(
    { length: bars - fewest + 1 },
    (_, less) => Math.max(1, Math.ceil(minutes / (bars - less))),
  );
  const excess = (width: number) => Math.ceil(minutes / width) * width - minutes;
  return widths.reduce((best, width) => excess(width) < excess(best) ? width : best);
}

/** Counts runs by time. Only a text requires the runs themselves. */
function byRuns(
  store: LogStore,
  { filter, from, to, bars, width, deadline }: HistogramOptions & { readonly width: number },
): Histogram {
  const counts = emptyBars(bars);
  const window = { ...filter, from: Math.max(from, filter.from ?? from), to: Math.min(to, filter.to ?? to) };
  const counted = { filter: window, from, width };
  let countedFrom: number | null = null;
  for (
    const step of filter.text === undefined
      ? countSteps(store, counted)
      : countFound(store, { ...counted, to })
  ) {
    for (const [bar, outcome, runs] of step.counts) add(counts, { bar, outcome, runs });
    if (!step.isLast && performance.now() >= deadline) {
      countedFrom = Math.max(from, step.at);
      break;
    }
  }
  return { from, to: from + bars * width, barMs: width, bars: counts, outcomes: runOutcomes, countedFrom };
}

/** Counts the runs that a search finds. */
function* countFound(
  store: LogStore,
  { filter, from, to, width }: Pick<HistogramOptions, "filter" | "from" | "to"> & { readonly width: number },
): Generator<CountStep> {
  let last = to;
  for (const { runs, next } of searchSteps(store, { filter, limit: RUNS_AT_ONCE })) {
    last = runs.at(-1)?.record[0] ?? last;
    yield {
      counts: runs.map(({ record: [at, , , , outcome] }) => [Math.floor((at - from) / width), outcome, 1]),
      at: last,
      isLast: next === null,
    };
  }
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
