/** The loaded app: functions by path, and tables. */
import { nearest } from "../../../kit/nearest.ts";
import type { FunctionKind } from "../../../protocol/function_reference.ts";
import type { ProfileBuilder } from "../../api/profile.ts";
import type { FunctionSpec } from "../../api/registration.ts";
import type { CallOrigin } from "../../host_port.ts";
import { unknownFunctionText } from "../../outcome.ts";
import { isCtxPath } from "../../system_module.ts";
import type { AdminAccess } from "./admin_access.ts";
import { RefusedCallError } from "../runs/call_errors.ts";
import type { AppTables } from "./app_tables.ts";

export interface LoadedFunction {
  readonly udfPath: string;
  readonly spec: FunctionSpec;
  readonly system: boolean;
  /** Its doc comment, if it has one. */
  readonly doc?: string;
}

export interface App {
  readonly functions: ReadonlyMap<string, LoadedFunction>;
  readonly tables: AppTables;
  /** The app's profile of users, if defined. */
  readonly profile?: ProfileBuilder;
  /** The access check for admin functions. Without one, no one has access. */
  readonly adminAccess?: AdminAccess;
}

/**
 * Returns the function at a path. Internal functions are hidden from clients. Admin functions are checked later
 * (`runFrame` in transaction_ctx.ts).
 * @throws RefusedCallError if the caller has no function of this kind.
 */
export function findFunction(
  app: App,
  udfPath: string,
  { kind, origin }: { readonly kind: FunctionKind; readonly origin: CallOrigin },
): LoadedFunction {
  const found = app.functions.get(udfPath);
  if (found === undefined) throw unknownFunction(udfPath, suggestion(app, udfPath, origin));
  if (!reaches(found, origin)) {
    const isHidden = found.spec.visibility === "internal" && !found.system;
    throw unknownFunction(udfPath, isHidden ? "It is internal: clients cannot call it" : undefined);
  }
  if (found.spec.kind !== kind) {
    if (found.spec.visibility === "admin") throw unknownFunction(udfPath);
    throw new RefusedCallError(
      "unknown_function",
      `"${udfPath}" is ${withArticle(found.spec.kind)}, not ${withArticle(kind)}`,
    );
  }
  return found;
}

/** The error for functions that do not exist for the caller. */
export function unknownFunction(udfPath: string, hint?: string): RefusedCallError {
  return new RefusedCallError("unknown_function", unknownFunctionText(udfPath), hint);
}

/** Names the function of the app that the caller can reach and probably means. */
function suggestion(app: App, udfPath: string, origin: CallOrigin): string | undefined {
  const reachable = [...app.functions.values()].filter((known) => !known.system && reaches(known, origin));
  const meant = nearest(udfPath, reachable.map((known) => known.udfPath));
  return meant === null ? undefined : `Did you mean "${meant}"?`;
}

function reaches(found: LoadedFunction, origin: CallOrigin): boolean {
  switch (found.spec.visibility) {
    case "public":
      return true;
    case "admin":
      return origin !== "server";
    case "internal":
      return reachesInternal(found, origin);
    default:
      return found.spec.visibility satisfies never;
  }
}

/** Internal functions of the app are for its other functions. Those of the service are for the service, except behind `ctx`. */
function reachesInternal({ system, udfPath }: LoadedFunction, origin: CallOrigin): boolean {
  return system && !isCtxPath(udfPath) ? origin === "system" : origin !== "client";
}

function withArticle(kind: FunctionKind): string {
  return kind === "action" ? "an action" : `a ${kind}`;
}
