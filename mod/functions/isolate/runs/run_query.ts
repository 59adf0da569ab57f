/** Runs one query inside an open snapshot. */
import type { ReadTransaction } from "../../../engine/mod.ts";
import type { ReadSet } from "../../../engine/types.ts";
import type { AuthScope } from "../../identity.ts";
import type { Ending } from "../../outcome.ts";
import type { ReadTrace } from "../../read_trace.ts";
import type { WireQuery, WireUse } from "../../wire/messages.ts";
import { needsAdminAccess } from "../app/admin_access.ts";
import { type App, findFunction } from "../app/app.ts";
import { asCall, Call } from "./call.ts";
import { endingOfError } from "./ending.ts";
import { settleOrIdle } from "../process/idle.ts";
import { checkTaken } from "./unhandled_failures.ts";
import { useOf } from "./run_use.ts";
import { ReadTracer } from "./read_tracer.ts";
import { outerFrame, runFrame } from "../ctx/transaction_ctx.ts";

export interface QueryRun {
  readonly ending: Ending;
  readonly logLines: readonly string[];
  readonly readSet: ReadSet;
  readonly scope: AuthScope;
  readonly nondeterministic: boolean;
  readonly use: WireUse;
  /** Present if the query is traced. */
  readonly reads?: readonly ReadTrace[];
}

/** Runs a query at time `at`. Never throws: errors are part of the result. */
export async function runQuery(
  app: App,
  { udfPath, args, identity, origin, traced }: WireQuery,
  { reads, at }: { readonly reads: ReadTransaction; readonly at: number },
): Promise<QueryRun> {
  // Seeded, so that randomness alone does not change the result.
  const seed = () => `${udfPath}\n${JSON.stringify(args)}`;
  const call = new Call({ udfPath, identity, at, seed, reads });
  if (traced === true) call.tracer = new ReadTracer();
  let ending: Ending;
  const requiresAdmin = needsAdminAccess(app.functions.get(udfPath), origin);
  // Results of admin functions, including "no such function", are not shared between sessions.
  if (requiresAdmin) call.scope = "session";
  try {
    const callee = findFunction(app, udfPath, { kind: "query", origin });
    const frame = outerFrame(call, { reads, writes: null, system: callee.system });
    const text = await asCall(
      call,
      () => runFrame(app, frame, { callee, args, requiresAdmin, settle: settleOrIdle }),
    );
    if (frame.failures !== null) await checkTaken(frame, { call, undone: true });
    ending = { ok: true, text };
  } catch (error) {
    ending = endingOfError(error);
  }
  return {
    ending,
    logLines: call.logLines.take(),
    readSet: reads.readSet(),
    scope: call.scope,
    nondeterministic: call.nondeterministic,
    use: useOf(reads.usage),
    ...(call.tracer !== null && { reads: call.tracer.take() }),
  };
}
