/** Runs actions concurrently. Their calls of other functions go through main. */
import { withHelp } from "../../../explained.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import { UserError } from "../../../errors.ts";
import { functionLimits } from "../../../limits.ts";
import { type FunctionKind, type FunctionName, functionPath } from "../../../protocol/function_reference.ts";
import type { Ending, Outcome } from "../../outcome.ts";
import type { RunAction } from "../../wire/messages.ts";
import { type App, findFunction } from "../app/app.ts";
import { AuthApi } from "../ctx/auth_api.ts";
import { Call } from "./call.ts";
import { CalledFunctionError } from "./call_errors.ts";
import { endingOfError } from "./ending.ts";
import { restoreLanguage } from "../process/intrinsics.ts";
import { invoke } from "./invoke.ts";
import { jsonText } from "./json_text.ts";
import { LogApi } from "../ctx/log_api.ts";
import { checkTaken, type ContextUser, failedAt } from "./unhandled_failures.ts";
import { explainMissing } from "../ctx/missing_in_ctx.ts";
import { PresenceApi } from "../ctx/presence_api.ts";
import { SchedulerApi } from "../ctx/scheduler_api.ts";
import { StorageActionsApi } from "../ctx/storage_api.ts";
import { StreamsApi } from "../ctx/streams_api.ts";

const { parse } = JSON;
const realNow = Date.now;

type Args = Record<string, unknown>;

/** Asks main to run a function for an action. Never rejects. */
export type SubCaller = (
  sub: { readonly call: number; readonly kind: FunctionKind; readonly udfPath: string; readonly args: Args },
) => Promise<Outcome>;

const running = new AsyncLocalStorage<Call>();
// Bound as in call.ts.
const getRunning = running.getStore.bind(running);
const runAs = running.run.bind(running);

export function runningAction(): Call | null {
  return getRunning() ?? null;
}

/** `ctx` of an action. Disabled when the action has ended. */
export class ActionContext {
  readonly auth: AuthApi;
  readonly log: LogApi;
  readonly env: Readonly<Record<string, string>>;
  readonly scheduler: SchedulerApi;
  readonly storage: StorageActionsApi;
  readonly presence: PresenceApi;
  readonly streams: StreamsApi;
  readonly runQuery: (name: FunctionName, args?: Args) => Promise<unknown>;
  readonly runMutation: (name: FunctionName, args?: Args) => Promise<unknown>;
  readonly runAction: (name: FunctionName, args?: Args) => Promise<unknown>;

  constructor(
    call: Call,
    { app, env, now, run, asker }: {
      readonly app: App;
      readonly asker: ContextUser;
      readonly now: () => number;
      readonly env: Readonly<Record<string, string>>;
      readonly run: (kind: FunctionKind) => Caller;
    },
  ) {
    this.log = new LogApi(call.logLines);
    this.env = env;
    this.scheduler = new SchedulerApi({ app, now, mutate: run("mutation"), asker });
    this.runQuery = run("query");
    this.auth = new AuthApi(call, { query: this.runQuery, asker, now });
    this.runMutation = run("mutation");
    this.runAction = run("action");
    this.presence = new PresenceApi(this.runAction);
    this.streams = new StreamsApi(this.runAction);
    this.storage = new StorageActionsApi({
      query: this.runQuery,
      mutate: this.runMutation,
      act: this.runAction,
      asker,
    });
  }
}

explainMissing(ActionContext.prototype, {
  db: "ctx.db is not available in actions: read with ctx.runQuery and write with ctx.runMutation",
  rateLimit: "ctx.rateLimit is not available in actions: call it in a mutation, with ctx.runMutation",
});

type Caller = (name: FunctionName, args?: Args) => Promise<unknown>;

export interface ActionEnvironment {
  readonly env: Readonly<Record<string, string>>;
  /** Defaults to the system clock, milliseconds since the epoch. */
  readonly now?: () => number;
  readonly subCall: SubCaller;
}

export interface ActionRun {
  readonly ending: Ending;
  readonly logLines: readonly string[];
}

/** Runs an action. Never throws: errors are part of the result. */
export function runAction(
  app: App,
  { call, udfPath, args, identity, origin }: Omit<RunAction, "order">,
  surroundings: ActionEnvironment,
): Promise<ActionRun> {
  return withActionCtx(app, { call, udfPath, identity, ...surroundings }, async (ctx) => {
    const callee = findFunction(app, udfPath, { kind: "action", origin });
    return await invoke(callee, ctx, { args, settle: async (result) => await result });
  });
}

/** Runs code with the `ctx` of an action. `run` returns JSON. Never throws. */
export async function withActionCtx(
  app: App,
  { call: number, udfPath, identity, env, subCall, now = realNow }:
    & ActionEnvironment
    & Pick<RunAction, "call" | "udfPath" | "identity">,
  run: (ctx: ActionContext) => Promise<string>,
): Promise<ActionRun> {
  const call = new Call({ udfPath, identity, at: now(), seed: null, reads: undefined });
  const asker: ContextUser = { failures: null, checks: null };
  let open = true;
  const called = async (
    kind: FunctionKind,
    { path, args: subArgs }: { readonly path: string; readonly args: Args },
  ): Promise<unknown> => {
    if (!open) {
      throw withHelp(
        new Error(
          `"${udfPath}" has ended, and its ctx was used after that: await every promise before it returns`,
        ),
        "function_kind",
      );
    }
    const text = jsonText(subArgs, `The arguments of "${path}"`);
    if (text.length > functionLimits.argsCharsMax) {
      throw withHelp(
        new RangeError(
          `The arguments of "${path}" have ${text.length} characters of JSON, more than the limit of ${functionLimits.argsCharsMax}`,
        ),
        "limit",
      );
    }
    const outcome = await subCall({ call: number, kind, udfPath: path, args: parse(text) as Args });
    call.logLines.addAll(outcome.logLines);
    return resultOf(outcome);
  };
  const caller = (kind: FunctionKind): Caller => async (name, subArgs = {}) => {
    let path = "";
    try {
      path = functionPath(name);
      return await called(kind, { path, args: subArgs });
    } catch (error) {
      if (kind === "query") throw error;
      throw failedAt(asker, `ctx.${kind === "mutation" ? "runMutation" : "runAction"}("${path}")`, error);
    }
  };
  try {
    const ctx = new ActionContext(call, { app, env, now, run: caller, asker });
    const text = await (runAs(call, () => run(ctx)) as Promise<string>);
    if (asker.checks !== null) await asker.checks;
    if (asker.failures !== null) await checkTaken(asker, { call, undone: false });
    return { ending: { ok: true, text }, logLines: call.logLines.take() };
  } catch (error) {
    return { ending: endingOfError(error), logLines: call.logLines.take() };
  } finally {
    open = false;
    restoreLanguage();
  }
}

/** Returns the value of a called function, or throws its error. */
function resultOf(outcome: Outcome): unknown {
  if (outcome.ok) return parse(outcome.value);
  const { kind, message, data } = outcome.error;
  if (kind === "user" && data !== null) throw new UserError(data.code, message, data.data);
  throw new CalledFunctionError(outcome.error);
}
