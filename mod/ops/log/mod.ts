/** The execution log of function runs, read in pages, as a histogram and as a stream. */
export { ExecutionLog, type ExecutionLogOptions, type LogFacts } from "./execution_log.ts";
export { logPage, logRoutes, type LogRoutesOptions, noLogRoutes } from "./routes.ts";
export { isServicePath } from "./run_filter.ts";
export type { Retention, SavedFigures } from "./store/log_store.ts";
export type { LoggedRun } from "./run_record.ts";
export { LogStreams } from "./stream/log_streams.ts";
