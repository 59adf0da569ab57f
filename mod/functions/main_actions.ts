/** Actions of the service itself, which main runs: they need what no isolate has, such as the mail server. */
import type { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import type { FunctionCall, FunctionInfo } from "./host_port.ts";
import type { Identity } from "./identity.ts";
import { failed, type Outcome } from "./outcome.ts";

/** An action that main runs. */
export interface MainAction {
  /** `internal`: only the server itself calls it. Public when absent. */
  readonly visibility?: FunctionInfo["visibility"];
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

function outcomeOf(error: unknown): Outcome {
  if (error instanceof UserError || error instanceof ServiceError) {
    const data = { code: error.code, data: error instanceof UserError ? error.data : null };
    return { ok: false, error: { kind: "user", message: error.message, data }, logLines: [] };
  }
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error && error.stack !== undefined ? { stack: error.stack } : {};
  return { ok: false, error: { kind: "internal", message, data: null, ...stack }, logLines: [] };
}

/** The actions that main runs, by path: a table that a host of functions consults before its own. */
export class MainActions {
  readonly #actions: ReadonlyMap<string, MainAction>;

  constructor(actions: ReadonlyMap<string, MainAction> = new Map()) {
    this.#actions = actions;
  }

  /** An action's place among the app's functions: what clients see is the same. */
  info(udfPath: string): FunctionInfo | undefined {
    const action = this.#actions.get(udfPath);
    return action === undefined ? undefined : { kind: "action", visibility: action.visibility ?? "public" };
  }

  /** Runs the action a call is for; `null` when main has none at its path. */
  run({ udfPath, args, identity, origin }: FunctionCall): Promise<Outcome> | null {
    const action = this.#actions.get(udfPath);
    if (action === undefined) return null;
    if (action.visibility === "internal" && origin !== "system") {
      return Promise.resolve(failed("unknown_function", `There is no function "${udfPath}"`));
    }
    return action.run(args, identity);
  }
}
