/** Statistics of a running server: recent runs by function, and the state of its parts. */
export { GaugeHistory, type Gauges, type GaugesAt } from "./gauges.ts";
export { RunStats } from "./run_stats.ts";
export { type MeasuredParts, type ServerParts, serverStats } from "./server_stats.ts";
