/** Functions and tables of the service in every isolate: accounts, files, schedules. Passed as `SystemModule`s. */
import type { SchemaDefinition } from "../engine/types.ts";
import { TableBuilder } from "./api/schema.ts";
import type { SystemModule } from "./system_module.ts";

export function systemTables(modules: readonly SystemModule[]): SchemaDefinition {
  const tables = modules.flatMap((module) => Object.entries(module.tables));
  return new Map(tables.map(([name, table]) => [name, TableBuilder.definition(table)]));
}
