/** The `ctx` of queries and mutations, and their nested calls, all in one transaction. */
import type { WriteTransaction } from "../../../engine/mod.ts";
import { UserError } from "../../../errors.ts";
import { type FunctionName, functionPath } from "../../../protocol/function_reference.ts";
import { functionRole, isAllowed, ROLE_REQUIRED, roleText } from "../../admin_roles.ts";
import type { RateLimit } from "../../api/rate_limit.ts";
import { type App, findFunction, type LoadedFunction, unknownFunction } from "../app/app.ts";
import { AuthApi } from "./auth_api.ts";
import { Frame } from "../runs/call.ts";
import { CalledFunctionError, RefusedCallError } from "../runs/call_errors.ts";
import { DatabaseApi } from "./database_api.ts";
import { ImportApi } from "./import_api.ts";
import { InspectApi } from "./inspect_api.ts";
import { restoreLanguage } from "../process/intrinsics.ts";
import { frozenNow } from "../process/determinism.ts";
import { invoke } from "../runs/invoke.ts";
import { checkTaken, failedAt } from "../runs/unhandled_failures.ts";
import { jsonText } from "../runs/json_text.ts";
import { LineageApi } from "./lineage_api.ts";
import { LogApi } from "./log_api.ts";
import { explainMissing } from "./missing_in_ctx.ts";
import { takeToken } from "./rate_limit_api.ts";
import { SchedulerApi } from "./scheduler_api.ts";
import { StorageReaderApi, StorageWriterApi } from "./storage_api.ts";

const { parse } = JSON;

type Args = Record<string, unknown>;

/** Own fields instead of getters: authors spread and destructure `ctx`. */
export class QueryContext {
  readonly db: DatabaseApi;
  readonly auth: AuthApi;
  readonly log: LogApi;
  readonly storage: StorageReaderApi;
  readonly runQuery: (name: FunctionName, args?: Args) => Promise<unknown>;

  constructor(app: App, frame: Frame) {
    this.db = new DatabaseApi(frame, app.tables);
    this.log = new LogApi(frame.call.logLines);
    this.runQuery = (name, args) => runNested(app, frame, { kind: "query", name, args });
    this.auth = new AuthApi(frame.call, { query: this.runQuery, asker: frame, now: frozenNow });
    this.storage = new StorageReaderApi(this.runQuery);
  }
}

export class MutationContext extends QueryContext {
  readonly scheduler: SchedulerApi;
  readonly rateLimit: (name: string, limit: RateLimit) => Promise<void>;
  override readonly storage: StorageWriterApi;
  readonly runMutation: (name: FunctionName, args?: Args) => Promise<unknown>;

  constructor(app: App, frame: Frame) {
    super(app, frame);
    this.scheduler = new SchedulerApi({
      app,
      asker: frame,
      now: () => frame.call.at,
      mutate: (name, args) => runNested(app, frame, { kind: "mutation", name, args }),
    });
    this.rateLimit = (name, limit) => takeToken(frame, name, limit);
    this.runMutation = (name, args) => runNested(app, frame, { kind: "mutation", name, args });
    this.storage = new StorageWriterApi({ query: this.runQuery, mutate: this.runMutation, asker: frame });
  }
}

/** The `ctx` of a query of the service. */
export class SystemQueryContext extends QueryContext {
  readonly inspector: InspectApi;

  constructor(app: App, frame: Frame) {
    super(app, frame);
    this.inspector = new InspectApi(app, frame);
  }
}

/** The `ctx` of a mutation of the service. */
export class SystemMutationContext extends MutationContext {
  readonly importer: ImportApi;
  readonly inspector: InspectApi;
  readonly lineage: LineageApi;

  constructor(app: App, frame: Frame) {
    super(app, frame);
    this.inspector = new InspectApi(app, frame);
    this.importer = new ImportApi(frame, app.tables);
    this.lineage = new LineageApi(frame.call);
  }
}

const inMutations = "is not available in queries: make the function a mutation, or use it in an action";
const inActions = "is not available in queries and mutations: use it in an action";

explainMissing(QueryContext.prototype, {
  runMutation: `ctx.runMutation ${inMutations}`,
  scheduler: `ctx.scheduler ${inMutations}`,
  rateLimit: "ctx.rateLimit is not available in queries: make the function a mutation",
  runAction: `ctx.runAction ${inActions}`,
  env: `ctx.env ${inActions}`,
  presence: `ctx.presence ${inActions}`,
  streams: `ctx.streams ${inActions}`,
});

/** Calls a function from another one. Rejected calls throw an ordinary error in the caller. */
async function runNested(
  app: App,
  caller: Frame,
  { kind, name, args = {} }: {
    readonly kind: "query" | "mutation";
    readonly name: FunctionName;
    readonly args: Args | undefined;
  },
): Promise<unknown> {
  let path = "";
  try {
    path = functionPath(name);
    // Arguments and results are passed as JSON, as in any other call.
    const ownArgs = parse(jsonText(args, `The arguments of "${path}"`)) as Args;
    const callee = findFunction(app, path, { kind, origin: caller.system ? "system" : "server" });
    return parse(await caller.nest(() => runInside(app, caller, { callee, args: ownArgs })));
  } catch (error) {
    const thrown = error instanceof RefusedCallError
      ? new CalledFunctionError({
        message: error.kind === "args"
          ? `${path}: ${error.message}`
          : [error.message, ...error.hint === undefined ? [] : [error.hint]].join(". "),
      })
      : error;
    // A query that is not awaited has no effect.
    throw kind === "query" ? thrown : failedAt(caller, `ctx.runMutation("${path}")`, thrown);
  }
}

/** Runs a function in the caller's transaction. A mutation that throws is rolled back. */
async function runInside(
  app: App,
  caller: Frame,
  { callee, args }: { readonly callee: LoadedFunction; readonly args: Args },
): Promise<string> {
  const writes = callee.spec.kind === "mutation" ? caller.writes : null;
  const savepoint = writes?.savepoint();
  const { mark } = caller.call.undos;
  const frame = new Frame(caller.call, { reads: caller.reads, writes, caller, system: callee.system });
  let text: string;
  try {
    text = await runFrame(app, frame, { callee, args, settle: asIs });
    if (frame.failures !== null) await checkTaken(frame, { call: frame.call, undone: true });
  } catch (error) {
    // After the whole call has ended there is no transaction, hence no savepoint.
    if (caller.open && savepoint !== undefined) {
      savepoint.rollback();
      caller.call.undos.backTo(mark);
    }
    throw error;
  }
  if (caller.open) savepoint?.release();
  return text;
}

/** Runs a function in its frame and returns its result as JSON. Closes the frame at the end. */
export async function runFrame(
  app: App,
  frame: Frame,
  { callee, args, requiresAdmin = false, settle }: {
    readonly callee: LoadedFunction;
    readonly args: Args;
    /** Whether the caller needs administrator access. */
    readonly requiresAdmin?: boolean;
    readonly settle: (result: PromiseLike<unknown>) => Promise<unknown>;
  },
): Promise<string> {
  try {
    const ctx = contextOf(app, frame);
    // Before the arguments are validated: their errors are for administrators only.
    if (requiresAdmin) await settle(checkRole(app, ctx, callee));
    // Rolled back if the function fails. Records the caller as of now.
    const notes = requiresAdmin && frame.writable ? app.adminAccess?.notes ?? null : null;
    if (notes !== null) await settle(notes(ctx, { udfPath: callee.udfPath, args }));
    const text = await invoke(callee, ctx, { args, settle });
    if (frame.checks !== null) await settle(frame.checks);
    // Nested functions that were not awaited are still part of this transaction.
    if (frame.busy) await settle(frame.nestedSettled());
    return text;
  } catch (error) {
    // Nested functions end before their caller is rolled back. With the whole call, they just end.
    if (frame.busy && frame.depth > 0) await frame.nestedSettled();
    throw error;
  } finally {
    frame.close();
    restoreLanguage();
  }
}

/** Throws for callers who are no administrators, or whose role does not allow the function. */
async function checkRole(app: App, ctx: QueryContext, { udfPath, spec }: LoadedFunction): Promise<void> {
  const role = await app.adminAccess?.roleOf(ctx) ?? null;
  if (role === null) throw unknownFunction(udfPath);
  const required = functionRole(udfPath, spec.kind);
  if (!isAllowed(role, required)) throw new UserError(ROLE_REQUIRED, roleText(required), { role: required });
}

function contextOf(app: App, frame: Frame): QueryContext {
  if (!frame.writable) {
    return frame.system ? new SystemQueryContext(app, frame) : new QueryContext(app, frame);
  }
  return frame.system ? new SystemMutationContext(app, frame) : new MutationContext(app, frame);
}

export function outerFrame(
  call: Frame["call"],
  { reads, writes, system }: {
    readonly reads: Frame["reads"];
    readonly writes: WriteTransaction | null;
    readonly system: boolean;
  },
): Frame {
  return new Frame(call, { reads, writes, caller: null, system });
}

async function asIs(result: PromiseLike<unknown>): Promise<unknown> {
  return await result;
}
