/** The execution log: what ran, who called it, what it said; read in pages, as a histogram and as a stream. */
export { ExecutionLog, type ExecutionLogOptions, type LogFacts } from "./execution_log.ts";
export { LogFile } from "./log_file.ts";
export { logRoutes, type LogRoutesOptions, noLogRoutes } from "./routes.ts";
export { isServicePath } from "./run_filter.ts";
export type { Retention, SavedFigures } from "./store/log_store.ts";
export { otherLogFormat } from "./store/log_database.ts";
export { logSchemaSql } from "./store/log_schema.ts";
export type { LoggedRun } from "./run_record.ts";
export { UnusableLogError } from "./store/log_database.ts";
export { LogStreams } from "./stream/log_streams.ts";
