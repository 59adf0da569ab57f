/** Actions of the service that run in main, because they need resources no isolate has, such as the mail server. */
import type { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import { type AdminRole, functionRole, isAllowed, ROLE_REQUIRED, roleText } from "./admin_roles.ts";
import type { FunctionCall, FunctionInfo } from "./host_port.ts";
import type { Identity } from "./identity.ts";
import { failed, type Outcome, unknownFunctionText } from "./outcome.ts";

export interface MainAction {
  /** `internal`: called only by the server. `admin`: called by administrators. Public if absent. */
  readonly visibility?: FunctionInfo["visibility"];
  /** Calls by administrators are not audited: it changes nothing, or writes audit entries itself. */
  readonly unnoted?: true;
  /** Runs with validated arguments. The result is JSON. */
  run(args: Record<string, unknown>, identity: Identity, caller?: CallingRun): Promise<Outcome>;
}

/** The run of an action or route that called a method of its `ctx`. Empty for other callers. */
export type CallingRun = Pick<FunctionCall, "calledBy" | "callerEnded">;

/** Creates an action from an argument schema and a handler. `ServiceError` and `UserError` reach the caller. */
export function mainAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity, caller: CallingRun) => Promise<unknown>,
): MainAction {
  return {
    async run(args, identity, caller = {}) {
      const parsed = schema.safeParse(args);
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        return failed(
          "args",
          `${["args", ...issue?.path ?? []].join(".")}: ${issue?.message ?? "Invalid input"}`,
        );
      }
      try {
        const value = JSON.stringify(await handler(parsed.data, identity, caller) ?? null);
        return { ok: true, value, logLines: [] };
      } catch (error) {
        return outcomeOf(error);
      }
    },
  };
}

/** Like {@linkcode mainAction}, callable only by the server. */
export function internalMainAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity, caller: CallingRun) => Promise<unknown>,
): MainAction {
  return { visibility: "internal", run: mainAction(schema, handler).run };
}

/** Like {@linkcode mainAction}, callable by administrators. */
export function adminMainAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity, caller: CallingRun) => Promise<unknown>,
): MainAction {
  return { visibility: "admin", run: mainAction(schema, handler).run };
}

/** Like {@linkcode adminMainAction}, without automatic audit entries. */
export function unauditedAdminAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity, caller: CallingRun) => Promise<unknown>,
): MainAction {
  return { ...adminMainAction(schema, handler), unnoted: true };
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof UserError || error instanceof ServiceError) {
    const data = { code: error.code, data: error.data };
    return { ok: false, error: { kind: "user", message: error.message, data }, logLines: [] };
  }
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error && error.stack !== undefined ? { stack: error.stack } : {};
  return { ok: false, error: { kind: "internal", message, data: null, ...stack }, logLines: [] };
}

/** Access check for admin actions, like that of queries and mutations (`isolate/app/admin_access.ts`). */
export interface ActionAccess {
  /** Returns a client's role; `null` without a valid administrator session. */
  roleOf(identity: Identity): Promise<AdminRole | null>;
  /** Called after each completed action, for the audit log. Never rejects. */
  notes(call: FunctionCall, outcome: Outcome): Promise<void>;
}

/** Actions of main by path. Consulted before the functions of isolates. */
export class MainActions {
  readonly #actions: ReadonlyMap<string, MainAction>;
  readonly #access: ActionAccess | null;

  /** Without a check, clients cannot call admin actions. */
  constructor(actions: ReadonlyMap<string, MainAction> = new Map(), access: ActionAccess | null = null) {
    this.#actions = actions;
    this.#access = access;
  }

  /** Returns kind and visibility, as for functions in isolates. */
  info(udfPath: string): FunctionInfo | undefined {
    const action = this.#actions.get(udfPath);
    return action === undefined ? undefined : { kind: "action", visibility: action.visibility ?? "public" };
  }

  *infos(): Generator<[udfPath: string, info: FunctionInfo]> {
    for (const [udfPath, { visibility = "public" }] of this.#actions) {
      yield [udfPath, { kind: "action", visibility }];
    }
  }

  /** Runs an action. Returns `null` if there is none at the path. */
  run(call: FunctionCall): Promise<Outcome> | null {
    const action = this.#actions.get(call.udfPath);
    if (action === undefined) return null;
    switch (action.visibility) {
      case undefined:
      case "public":
        return action.run(call.args, call.identity, call);
      case "internal":
        return call.origin === "system"
          ? action.run(call.args, call.identity, call)
          : Promise.resolve(unknownFunction(call));
      case "admin":
        return this.#runAdmin(action, call);
      default:
        return action.visibility satisfies never;
    }
  }

  async #runAdmin(action: MainAction, call: FunctionCall): Promise<Outcome> {
    const { udfPath, args, identity, origin } = call;
    if (origin === "system") return await action.run(args, identity, call);
    const role = origin === "server" ? null : await this.#access?.roleOf(identity) ?? null;
    if (role === null || this.#access === null) return unknownFunction(call);
    const required = functionRole(udfPath, "action");
    if (!isAllowed(role, required)) {
      return outcomeOf(new UserError(ROLE_REQUIRED, roleText(required), { role: required }));
    }
    const outcome = await action.run(args, identity, call);
    if (action.unnoted !== true) await this.#access.notes(call, outcome);
    return outcome;
  }
}

function unknownFunction({ udfPath }: FunctionCall): Outcome {
  return failed("unknown_function", unknownFunctionText(udfPath));
}
