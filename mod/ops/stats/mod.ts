/** Statistics of a running server: recent runs by function, and the state of its parts. */
export { Histogram, Tally } from "./counters.ts";
export { GaugeHistory, type Gauges, type GaugesAt } from "./gauges.ts";
export { RunStats } from "./run_stats.ts";
export type { RunTotals } from "./run_totals.ts";
export { type ServerParts, serverStats, type StatsSources } from "./server_stats.ts";
