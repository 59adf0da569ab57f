/** The system functions of operations: what runs in the isolates, by the paths under which it is called. */
import type { SystemModule } from "../../functions/system_module.ts";
import { check, empty, write } from "./import.ts";

/** Called by the server only, at `_system/import:<name>`. */
export const importFunctions = { check, empty, write };

/** What operations bring into the isolates. */
export const opsModules: readonly SystemModule[] = [
  { path: "_system/import", tables: {}, functions: importFunctions },
];
