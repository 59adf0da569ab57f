/** What a log file is made of, for whoever checks one that comes from elsewhere. */
import { CREATE_LOG_SQL } from "./log_database.ts";
import { createSegmentSql } from "./segment.ts";

/** SQL that makes a log with the parts that one with these tables has. */
export function logSchemaSql(tables: readonly string[]): string {
  const parts = tables.flatMap((name) => /^runs_(\d{1,15})$/.exec(name)?.[1] ?? []);
  return [CREATE_LOG_SQL, ...parts.map((no) => createSegmentSql(Number(no)))].join(";\n");
}
