/** How a part of the service brings tables and functions of its own into the isolates. */
import type { FunctionKind } from "../protocol/function_reference.ts";
import type { RegisteredFunction, Visibility } from "../protocol/api_reference.ts";
import type { TableBuilder } from "./api/schema.ts";
import type { SystemMutationCtx, SystemQueryCtx } from "./api/system_context.ts";

/** A call of a function for administrators that passed their door. */
export interface AdminCall {
  readonly udfPath: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/**
 * Tables and functions of the service itself. Its functions read and write every table, those whose names begin with `_`
 * too. The entry of an isolate hands the list of all modules to the isolate; features never import one another.
 */
export interface SystemModule {
  /**
   * Module path of the functions. Internal functions, which only the server calls, stand under `_system/<feature>`;
   * those behind `ctx`, which functions of the app may call too, under `_ctx/<feature>`; those that clients may call
   * under `_<feature>`; those for administrators under `_admin/<subject>`.
   */
  readonly path: `_${string}`;
  /** By table name, which begins with `_`. */
  readonly tables: Readonly<Record<`_${string}`, TableBuilder>>;
  /** By name; made with `query`, `mutation` and their siblings. */
  readonly functions: Readonly<Record<string, RegisteredFunction<FunctionKind, Visibility, never, unknown>>>;
  /**
   * Who passes to functions for administrators: whether the caller has an administrator's session that lives now. At most
   * one module says so.
   */
  readonly admits?: (ctx: SystemQueryCtx<never>) => Promise<boolean>;
  /** Told of each mutation that an administrator calls, at its beginning and in its transaction. At most one module is. */
  readonly notes?: (ctx: SystemMutationCtx<never>, call: AdminCall) => Promise<void>;
  /** How its functions learn what the server was started with: called with `Boot.settings[name]`, before the app is loaded. */
  readonly settings?: { readonly name: string; readonly configure: (settings: unknown) => void };
}
