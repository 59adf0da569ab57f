/** How features add their tables and functions to the isolates. */
import type { SchemaDefinition } from "../engine/types.ts";
import type { RegisteredFunction, Visibility } from "../protocol/api_reference.ts";
import type { FunctionKind } from "../protocol/function_reference.ts";
import { TableBuilder } from "./api/schema.ts";
import type { AdminRole } from "./admin_roles.ts";
import type { SystemMutationCtx, SystemQueryCtx } from "./api/system_context.ts";

export interface AdminCall {
  readonly udfPath: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** Tables and functions of the service, with access to all tables. The entry point of an isolate lists the modules. */
export interface SystemModule {
  /** Module path: `_system/` only for the server, `_ctx/` for the app, `_<feature>` for clients, `_admin/` for administrators. */
  readonly path: `_${string}`;
  /** By table name, which begins with `_`. */
  readonly tables: Readonly<Record<`_${string}`, TableBuilder>>;
  /** By name. Created with `query`, `mutation` and the like. */
  readonly functions: Readonly<Record<string, RegisteredFunction<FunctionKind, Visibility, never, unknown>>>;
  /** Returns the caller's role; `null` without a valid administrator session. Defined by at most one module. */
  readonly adminRole?: (ctx: SystemQueryCtx<never>) => Promise<AdminRole | null>;
  /** Called at the start of each mutation by an administrator, in its transaction. Defined by at most one module. */
  readonly notes?: (ctx: SystemMutationCtx<never>, call: AdminCall) => Promise<void>;
  /** Called with `Boot.settings[name]` before the app is loaded. */
  readonly settings?: { readonly name: string; readonly configure: (settings: unknown) => void };
}

/** Returns the definitions of the modules' tables, by name. */
export function systemTables(modules: readonly SystemModule[]): SchemaDefinition {
  const tables = modules.flatMap((module) => Object.entries(module.tables));
  return new Map(tables.map(([name, table]) => [name, TableBuilder.definition(table)]));
}

/** Whether a path belongs to the service: no app module has a name that begins with `_`. */
export function isSystemPath(udfPath: string): boolean {
  return /^_[^:]*:/.test(udfPath);
}

/** Whether a service function is behind `ctx`, hence callable by the app: `_ctx/<feature>:<name>`. */
export function isCtxPath(udfPath: string): boolean {
  return udfPath.startsWith("_ctx/");
}
