/** Statistics of a running server: recent runs by function, and the state of its parts. */
export { Histogram, Tally } from "./counters.ts";
export {
  GaugeHistory,
  type Gauges,
  type GaugesAt,
  type ServerParts,
  serverStats,
  type StatsSources,
} from "./server_stats.ts";
export type { RefusedLimit } from "./refused_limits.ts";
export { RunStats, type RunTotals } from "./run_stats.ts";
export { Trend, type TrendPoint } from "./trend.ts";
