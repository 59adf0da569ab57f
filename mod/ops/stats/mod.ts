/** Figures of a running server: what ran lately, by function, and how its parts are. */
export { RunStats } from "./run_stats.ts";
export { type MeasuredParts, type ServerParts, serverStats } from "./server_stats.ts";
