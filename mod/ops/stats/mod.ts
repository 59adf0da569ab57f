/** Figures of a running server: what ran lately, by function, and how its parts are. */
export { GaugeHistory, type Gauges, type GaugesAt } from "./gauges.ts";
export { RunStats } from "./run_stats.ts";
export { type MeasuredParts, type ServerParts, serverStats } from "./server_stats.ts";
