/** Actions of the service itself, which main runs: they need what no isolate has, such as the mail server. */
import type { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import type { FunctionCall, FunctionInfo } from "./host_port.ts";
import type { Identity } from "./identity.ts";
import { failed, type Outcome, unknownFunctionText } from "./outcome.ts";

/** An action that main runs. */
export interface MainAction {
  /** `internal`: only the server itself calls it; `admin`: administrators do. Public when absent. */
  readonly visibility?: FunctionInfo["visibility"];
  /** Nothing is to be noted of what administrators do with it: it changes nothing, or notes it itself. */
  readonly unnoted?: true;
  /** Runs with the caller's arguments, checked by {@linkcode mainAction}. The result is JSON. */
  run(args: Record<string, unknown>, identity: Identity): Promise<Outcome>;
}

/** Makes an action of a schema for its arguments and a handler. `ServiceError` and `UserError` reach the caller. */
export function mainAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity) => Promise<unknown>,
): MainAction {
  return {
    async run(args, identity) {
      const parsed = schema.safeParse(args);
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        return failed(
          "args",
          `${["args", ...issue?.path ?? []].join(".")}: ${issue?.message ?? "Invalid input"}`,
        );
      }
      try {
        const value = JSON.stringify(await handler(parsed.data, identity) ?? null);
        return { ok: true, value, logLines: [] };
      } catch (error) {
        return outcomeOf(error);
      }
    },
  };
}

/** Like {@linkcode mainAction}, for an action that only the server itself calls. */
export function internalMainAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity) => Promise<unknown>,
): MainAction {
  return { visibility: "internal", run: mainAction(schema, handler).run };
}

/** Like {@linkcode mainAction}, for an action that administrators call. */
export function adminMainAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity) => Promise<unknown>,
): MainAction {
  return { visibility: "admin", run: mainAction(schema, handler).run };
}

/** Like {@linkcode adminMainAction}, for one that changes nothing, or notes itself what it does. */
export function unnotedAdminAction<Args extends z.ZodType>(
  schema: Args,
  handler: (args: z.output<Args>, identity: Identity) => Promise<unknown>,
): MainAction {
  return { ...adminMainAction(schema, handler), unnoted: true };
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof UserError || error instanceof ServiceError) {
    const data = { code: error.code, data: error instanceof UserError ? error.data : null };
    return { ok: false, error: { kind: "user", message: error.message, data }, logLines: [] };
  }
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error && error.stack !== undefined ? { stack: error.stack } : {};
  return { ok: false, error: { kind: "internal", message, data: null, ...stack }, logLines: [] };
}

/** The door of actions for administrators, as of their queries and mutations (`isolate/app/admin_door.ts`). */
export interface ActionDoor {
  /** Whether a client is an administrator whose session lives. */
  admits(identity: Identity): Promise<boolean>;
  /** Told of each action that passed and has ended. Never rejects. */
  notes(call: FunctionCall, outcome: Outcome): Promise<void>;
}

/** The actions that main runs, by path: a table that a host of functions consults before its own. */
export class MainActions {
  readonly #actions: ReadonlyMap<string, MainAction>;
  readonly #door: ActionDoor | null;

  /** Without a door no client reaches actions for administrators. */
  constructor(actions: ReadonlyMap<string, MainAction> = new Map(), door: ActionDoor | null = null) {
    this.#actions = actions;
    this.#door = door;
  }

  /** An action's place among the app's functions: what clients see is the same. */
  info(udfPath: string): FunctionInfo | undefined {
    const action = this.#actions.get(udfPath);
    return action === undefined ? undefined : { kind: "action", visibility: action.visibility ?? "public" };
  }

  /** All of them, as {@linkcode info} tells them. */
  *infos(): Generator<[udfPath: string, info: FunctionInfo]> {
    for (const [udfPath, { visibility = "public" }] of this.#actions) {
      yield [udfPath, { kind: "action", visibility }];
    }
  }

  /** Runs the action a call is for; `null` when main has none at its path. */
  run(call: FunctionCall): Promise<Outcome> | null {
    const action = this.#actions.get(call.udfPath);
    if (action === undefined) return null;
    switch (action.visibility) {
      case undefined:
      case "public":
        return action.run(call.args, call.identity);
      case "internal":
        return call.origin === "system"
          ? action.run(call.args, call.identity)
          : Promise.resolve(unknownFunction(call));
      case "admin":
        return this.#runAdmin(action, call);
      default:
        return action.visibility satisfies never;
    }
  }

  async #runAdmin(action: MainAction, call: FunctionCall): Promise<Outcome> {
    const { args, identity, origin } = call;
    if (origin === "system") return await action.run(args, identity);
    if (origin === "server" || this.#door === null || !await this.#door.admits(identity)) {
      return unknownFunction(call);
    }
    const outcome = await action.run(args, identity);
    if (action.unnoted !== true) await this.#door.notes(call, outcome);
    return outcome;
  }
}

function unknownFunction({ udfPath }: FunctionCall): Outcome {
  return failed("unknown_function", unknownFunctionText(udfPath));
}
