/** How features add their tables and functions to the isolates. */
import type { FunctionKind } from "../protocol/function_reference.ts";
import type { RegisteredFunction, Visibility } from "../protocol/api_reference.ts";
import type { TableBuilder } from "./api/schema.ts";
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
  /** Whether the caller has a valid administrator session. Defined by at most one module. */
  readonly admits?: (ctx: SystemQueryCtx<never>) => Promise<boolean>;
  /** Called at the start of each mutation by an administrator, in its transaction. Defined by at most one module. */
  readonly notes?: (ctx: SystemMutationCtx<never>, call: AdminCall) => Promise<void>;
  /** Called with `Boot.settings[name]` before the app is loaded. */
  readonly settings?: { readonly name: string; readonly configure: (settings: unknown) => void };
}
