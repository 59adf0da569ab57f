/** The loaded app: its functions by path, and its tables. */
import type { FunctionKind } from "../../../protocol/function_reference.ts";
import type { FunctionSpec } from "../../api/registration.ts";
import type { CallOrigin } from "../../host_port.ts";
import { isCtxPath } from "../../system_functions.ts";
import { RefusedCallError } from "../runs/call_errors.ts";
import type { Tables } from "./tables.ts";

export interface LoadedFunction {
  readonly udfPath: string;
  readonly spec: FunctionSpec;
  /** Whether it is a function of the service itself. */
  readonly system: boolean;
}

export interface App {
  readonly functions: ReadonlyMap<string, LoadedFunction>;
  readonly tables: Tables;
}

/**
 * The function a call names. Throws a {@linkcode RefusedCallError} when there is none of this kind for the caller;
 * clients learn nothing of internal functions.
 */
export function findFunction(
  app: App,
  udfPath: string,
  { kind, origin }: { readonly kind: FunctionKind; readonly origin: CallOrigin },
): LoadedFunction {
  const found = app.functions.get(udfPath);
  if (found === undefined || (found.spec.visibility === "internal" && !reachesInternal(found, origin))) {
    throw new RefusedCallError("unknown_function", `There is no function "${udfPath}"`);
  }
  if (found.spec.kind !== kind) {
    throw new RefusedCallError(
      "unknown_function",
      `"${udfPath}" is ${withArticle(found.spec.kind)}, not ${withArticle(kind)}`,
    );
  }
  return found;
}

/**
 * Internal functions of the app are for its other functions, those of the service for the service alone, but for what
 * stands behind `ctx`: that, app code may call.
 */
function reachesInternal({ system, udfPath }: LoadedFunction, origin: CallOrigin): boolean {
  return system && !isCtxPath(udfPath) ? origin === "system" : origin !== "client";
}

function withArticle(kind: FunctionKind): string {
  return kind === "action" ? "an action" : `a ${kind}`;
}
