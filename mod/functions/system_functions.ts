/**
 * Functions and tables of the service, loaded into every isolate with the app's: accounts, files, schedules. The starter of
 * the isolate passes them as a list of `SystemModule`.
 */
import type { SchemaDefinition } from "../engine/types.ts";
import { TableBuilder } from "./api/schema.ts";
import type { SystemModule } from "./system_module.ts";

/** The tables of system modules as an engine schema. */
export function systemTables(modules: readonly SystemModule[]): SchemaDefinition {
  const tables = modules.flatMap((module) => Object.entries(module.tables));
  return new Map(tables.map(([name, table]) => [name, TableBuilder.definition(table)]));
}
