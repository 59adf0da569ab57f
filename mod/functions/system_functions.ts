/**
 * Functions and tables of the service itself, loaded into every isolate beside the app's: accounts, files, schedules.
 * Which there are is said by whoever starts the isolate, with a list of `SystemModule`.
 */
import type { SchemaDefinition } from "../engine/types.ts";
import { TableBuilder } from "./api/schema.ts";
import type { SystemModule } from "./system_module.ts";

/** The tables of system modules for the engine. */
export function systemTables(modules: readonly SystemModule[]): SchemaDefinition {
  const tables = modules.flatMap((module) => Object.entries(module.tables));
  return new Map(tables.map(([name, table]) => [name, TableBuilder.definition(table)]));
}
