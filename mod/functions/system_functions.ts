/**
 * Functions and tables of the service itself, loaded into every isolate beside the app's: accounts, files, schedules.
 * Their paths begin with `_system/`, and only the server may call them.
 */
import type { SchemaDefinition } from "../engine/types.ts";

/** Modules by path, as `import * as` gives them. */
export const systemModules: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {};

/** Tables whose names begin with `_`. */
export const systemTables: SchemaDefinition = new Map();

/** How paths of system functions begin. */
export const SYSTEM_PATH = "_system/";
