/** How features add their tables and functions to the isolates. */
import type { FunctionKind } from "../protocol/function_reference.ts";
import type { RegisteredFunction, Visibility } from "../protocol/api_reference.ts";
import type { TableBuilder } from "./api/schema.ts";
import type { SystemMutationCtx, SystemQueryCtx } from "./api/system_context.ts";

/** An authorized call of an admin function. */
export interface AdminCall {
  readonly udfPath: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/**
 * Tables and functions of the service. Its functions have access to all tables, including those whose names begin with `_`.
 * The entry point of an isolate passes the list of modules. Features never import one another.
 */
export interface SystemModule {
  /**
   * Module path of the functions. `_system/<feature>`: internal, called only by the server. `_ctx/<feature>`: behind `ctx`,
   * callable by the app. `_<feature>`: callable by clients. `_admin/<subject>`: callable by administrators.
   */
  readonly path: `_${string}`;
  /** By table name, which begins with `_`. */
  readonly tables: Readonly<Record<`_${string}`, TableBuilder>>;
  /** By name. Created with `query`, `mutation` and the like. */
  readonly functions: Readonly<Record<string, RegisteredFunction<FunctionKind, Visibility, never, unknown>>>;
  /** Whether the caller has a valid administrator session. Defined by at most one module. */
  readonly admits?: (ctx: SystemQueryCtx<never>) => Promise<boolean>;
  /** Called at the start of each mutation by an administrator, in its transaction. Defined by at most one module. */
  readonly notes?: (ctx: SystemMutationCtx<never>, call: AdminCall) => Promise<void>;
  /** Called with `Boot.settings[name]` before the app is loaded. */
  readonly settings?: { readonly name: string; readonly configure: (settings: unknown) => void };
}
