/** Figures by quarter of an hour for a week, for charts of a day and a week. */
import { statsLimits } from "../limits.ts";
import type { SavedFigures } from "../log/mod.ts";
import type { MinuteStats, RunStats } from "./run_stats.ts";
import type { Gauges, GaugesAt } from "./server_stats.ts";

export interface TrendPoint extends MinuteStats {
  /** At its end; `null` if there was no sample. */
  readonly gauges: Gauges | null;
}

const { trendMs, trendKept } = statsLimits;

export interface TrendOptions {
  readonly runs: Pick<RunStats, "sumOf">;
  readonly gauges: { readonly history: readonly GaugesAt[] };
  readonly now: () => number;
}

export class Trend {
  readonly #options: TrendOptions;
  /** Oldest first; at most `trendKept`. */
  #points: readonly TrendPoint[] = [];
  /** Start of the quarter that is growing. */
  #growing: number;

  constructor(options: TrendOptions) {
    this.#options = options;
    this.#growing = quarterOf(options.now());
  }

  /** Ends the quarters that are over. Returns figures to be saved, if any. Call often enough. */
  advance(): SavedFigures[] {
    const quarter = quarterOf(this.#options.now());
    const saved: SavedFigures[] = [];
    // Earlier minutes are not kept.
    this.#growing = Math.max(this.#growing, quarter - 3 * trendMs);
    for (; this.#growing < quarter; this.#growing += trendMs) {
      const point = this.#pointOf(this.#growing);
      if (point === null) continue;
      this.#points = [...this.#points, point].slice(-trendKept);
      saved.push({ span: "quarter", at: point.at, text: JSON.stringify(point) });
    }
    return saved;
  }

  /** Inserts the points of an earlier process, and continues after the last one. */
  restore(saved: readonly SavedFigures[]): void {
    const [first] = this.#points;
    const older = saved.filter(({ span, at }) => span === "quarter" && at < (first?.at ?? this.#growing))
      .flatMap(({ text }) => {
        try {
          return [JSON.parse(text) as TrendPoint];
        } catch {
          // Unreadable rows are skipped.
          return [];
        }
      });
    this.#points = [...older, ...this.#points].slice(-trendKept);
    // The quarter that was growing when that process ended may be over.
    const last = older.at(-1);
    if (first === undefined && last !== undefined) this.#growing = last.at + trendMs;
  }

  /** Returns the points of the last `ms`, oldest first; the last one is still growing. */
  points(ms: number): readonly TrendPoint[] {
    const quarter = quarterOf(this.#options.now());
    const growing = this.#pointOf(quarter);
    return [
      ...this.#points.filter(({ at }) => at > quarter - ms && at < quarter),
      ...growing === null ? [] : [growing],
    ];
  }

  #pointOf(at: number): TrendPoint | null {
    const { runs, gauges } = this.#options;
    const sum = runs.sumOf(at, at + trendMs);
    const sample = gauges.history.findLast((sample) => sample.at >= at && sample.at < at + trendMs);
    if (sum === null && sample === undefined) return null;
    const { at: _, ...measured } = sample ?? { at };
    return { ...sum ?? EMPTY, at, gauges: sample === undefined ? null : measured as Gauges };
  }
}

const NONE = { p50: null, p95: null, p99: null };
const EMPTY = { calls: 0, errors: 0, cacheHits: 0, mutations: 0, runMs: NONE, commitMs: NONE };

function quarterOf(now: number): number {
  return Math.floor(now / trendMs) * trendMs;
}
