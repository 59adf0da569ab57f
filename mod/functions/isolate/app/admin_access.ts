/** Access check for admin functions: for clients without an active administrator session they do not exist. */
import type { AdminRole } from "../../admin_roles.ts";
import type { FunctionSpec } from "../../api/registration.ts";
import type { CallOrigin } from "../../host_port.ts";
import type { AdminCall, SystemModule } from "../../system_module.ts";

/** The access check, provided by modules of the service. */
export interface AdminAccess {
  /** Returns the caller's role, or `null` without access. Called with the `ctx` of the function. */
  readonly roleOf: (ctx: unknown) => Promise<AdminRole | null>;
  /** Writes the audit entry in the mutation's transaction, before it runs. */
  readonly notes: ((ctx: unknown, call: AdminCall) => Promise<void>) | null;
}

/** Returns the check defined by the modules. `undefined` if there is none: then no one has access. */
export function adminAccess(modules: readonly SystemModule[]): AdminAccess | undefined {
  const roleOf = modules.find((module) => module.adminRole !== undefined)?.adminRole;
  const notes = modules.find((module) => module.notes !== undefined)?.notes ?? null;
  return roleOf === undefined
    ? undefined
    : { roleOf: roleOf as AdminAccess["roleOf"], notes: notes as AdminAccess["notes"] };
}

/** Whether a call has to be checked. */
export function needsAdminAccess(
  callee: { readonly spec: Pick<FunctionSpec, "visibility"> } | undefined,
  origin: CallOrigin,
): boolean {
  return callee?.spec.visibility === "admin" && origin === "client";
}
