/** The loaded app: its functions by path, and its tables. */
import type { FunctionKind } from "../../../protocol/function_reference.ts";
import type { ProfileBuilder } from "../../api/profile.ts";
import type { FunctionSpec } from "../../api/registration.ts";
import type { CallOrigin } from "../../host_port.ts";
import { unknownFunctionText } from "../../outcome.ts";
import { isCtxPath } from "../../system_paths.ts";
import type { AdminDoor } from "./admin_door.ts";
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
  /** What the app keeps of its users, if it says anything of that. */
  readonly profile?: ProfileBuilder;
  /** The door of functions for administrators; without one nobody passes. */
  readonly door?: AdminDoor;
}

/**
 * The function a call names. Throws a {@linkcode RefusedCallError} when there is none of this kind for the caller;
 * clients learn nothing of internal functions, nor of those for administrators, who have still to pass the door
 * (admin_door.ts).
 */
export function findFunction(
  app: App,
  udfPath: string,
  { kind, origin }: { readonly kind: FunctionKind; readonly origin: CallOrigin },
): LoadedFunction {
  const found = app.functions.get(udfPath);
  if (found === undefined || !reaches(found, origin)) throw unknownFunction(udfPath);
  if (found.spec.kind !== kind) {
    if (found.spec.visibility === "admin") throw unknownFunction(udfPath);
    throw new RefusedCallError(
      "unknown_function",
      `"${udfPath}" is ${withArticle(found.spec.kind)}, not ${withArticle(kind)}`,
    );
  }
  return found;
}

/** What is said of functions that do not exist for the caller. */
export function unknownFunction(udfPath: string): RefusedCallError {
  return new RefusedCallError("unknown_function", unknownFunctionText(udfPath));
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
