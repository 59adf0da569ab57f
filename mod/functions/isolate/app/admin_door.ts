/**
 * The door of functions for administrators. Clients pass it with an administrator's session that lives at the moment of
 * the call; for everybody else there is no such function, whatever they call it with.
 */
import type { FunctionSpec } from "../../api/registration.ts";
import type { CallOrigin } from "../../host_port.ts";
import type { AdminCall, SystemModule } from "../../system_module.ts";

/** What stands at the door, from the modules of the service. */
export interface AdminDoor {
  /** Whether the caller may pass. Called with the `ctx` of the function that is called. */
  readonly admits: (ctx: unknown) => Promise<boolean>;
  /** Notes what is done, in the mutation's own transaction, before it runs. */
  readonly notes: ((ctx: unknown, call: AdminCall) => Promise<void>) | null;
}

/** The door of a set of modules; `undefined` when none of them says who may pass: then nobody does. */
export function adminDoor(modules: readonly SystemModule[]): AdminDoor | undefined {
  const admits = modules.find((module) => module.admits !== undefined)?.admits;
  const notes = modules.find((module) => module.notes !== undefined)?.notes ?? null;
  return admits === undefined
    ? undefined
    : { admits: admits as AdminDoor["admits"], notes: notes as AdminDoor["notes"] };
}

/** Whether a call has to pass the door. */
export function needsDoor(
  callee: { readonly spec: Pick<FunctionSpec, "visibility"> } | undefined,
  origin: CallOrigin,
): boolean {
  return callee?.spec.visibility === "admin" && origin === "client";
}
