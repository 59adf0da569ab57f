/** System functions of deploys, by the paths under which they are called. */
import type { SystemModule } from "../../../functions/system_module.ts";
import { tables } from "../tables.ts";
import { begin, halt, list, resumable, step, stop, tryOut } from "./migrations.ts";
import { change, rows } from "./variables.ts";

/** Called by the server only, at `_system/deploy:<name>`. */
export const deploySystemFunctions = {
  beginMigration: begin,
  changeVariables: change,
  migrationStep: step,
  resumableMigrations: resumable,
  stopMigration: stop,
  tryMigration: tryOut,
  variableRows: rows,
};

export const deployModules: readonly SystemModule[] = [
  { path: "_system/deploy", tables, functions: deploySystemFunctions },
  { path: "_admin/migrations", tables: {}, functions: { halt, list } },
];
