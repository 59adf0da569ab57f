/** Runs any function under any identity for administrators, and reports details of the run. */
import { z } from "zod";
import type { ReadSet } from "../../engine/mod.ts";
import { UserError } from "../../errors.ts";
import type { FunctionCall, FunctionHost, QueryAnswer } from "../../functions/host_port.ts";
import { anonymous, type Identity } from "../../functions/identity.ts";
import type { CallError, Outcome } from "../../functions/outcome.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { system } from "./system.ts";

/** Run identity: a user, an administrator, or signed out. */
export const runAs = z.union([
  z.null(),
  z.strictObject({ userId: z.string() }),
  z.strictObject({ adminId: z.string() }),
]).default(null);

export const runArgs = z.strictObject({
  path: z.string(),
  args: z.record(z.string(), z.unknown()).default({}),
  as: runAs,
  /** Fails if the function is of another kind. */
  kind: z.enum(["query", "mutation", "action"]).optional(),
});

export interface ReadSummary {
  readonly table: string;
  readonly index: string;
  readonly points: number;
  readonly ranges: number;
  readonly ids: readonly string[];
}

export interface RunResult {
  readonly result:
    | { readonly ok: true; readonly value: unknown }
    | { readonly ok: false; readonly error: Pick<CallError, "kind" | "message" | "data" | "stack"> };
  readonly logLines: readonly string[];
}

export interface FunctionRun extends RunResult {
  readonly kind: "query" | "mutation" | "action";
  readonly ms: number;
  /** Snapshot of a query or commit of a mutation; `null` for actions. */
  readonly ts: number | null;
  /** Reads of a query; `null` for other functions. */
  readonly reads: readonly ReadSummary[] | null;
}

export interface RunFunctionOptions {
  readonly host: Pick<FunctionHost, "info" | "mutate" | "act" | "startQueryBatch">;
  readonly calls: SystemCalls;
}

const IDS_MAX = 50;

/** Runs a function of the app, or a system function callable by clients. Throws `unknown_function`. */
export async function runFunction(
  { host, calls }: RunFunctionOptions,
  { path, args, as, kind }: z.output<typeof runArgs>,
): Promise<FunctionRun> {
  const info = host.info(path);
  if (info === undefined || info.visibility === "admin") {
    throw new UserError("unknown_function", `Function "${path}" not found`);
  }
  if (kind !== undefined && info.kind !== kind) {
    throw new UserError("unknown_function", `"${path}" is of kind ${info.kind}, expected ${kind}`);
  }
  const identity = await identityOf(calls, as);
  const call: FunctionCall = { udfPath: path, args, identity, origin: "server" };
  const since = performance.now();
  switch (info.kind) {
    case "query": {
      const { outcome, ts, readSet, durationMs } = await runQuery(host, call);
      return {
        kind: "query",
        ...resultOf(outcome),
        ms: durationMs,
        ts,
        reads: await readsOf(calls, readSet),
      };
    }
    case "mutation": {
      const { outcome, ts } = await host.mutate(call);
      return { kind: "mutation", ...resultOf(outcome), ms: performance.now() - since, ts, reads: null };
    }
    case "action":
      return {
        kind: "action",
        ...resultOf(await host.act(call)),
        ms: performance.now() - since,
        ts: null,
        reads: null,
      };
    default:
      return info.kind satisfies never;
  }
}

/** Returns the identity of an account. Throws if it does not exist. */
export async function identityOf(calls: SystemCalls, as: z.output<typeof runAs>): Promise<Identity> {
  if (as === null) return anonymous;
  const [kind, id] = "userId" in as ? ["user", as.userId] as const : ["admin", as.adminId] as const;
  if (!await calls.query(system.accountExists, { kind, id })) {
    throw new UserError(
      kind === "user" ? "user_not_found" : "administrator_not_found",
      "Account not found",
    );
  }
  return {
    principal: `${kind}:${id}`,
    userId: kind === "user" ? id : null,
    adminId: kind === "admin" ? id : null,
    sessionId: null,
  };
}

/** Runs the query at its own snapshot without sharing, to collect its reads. */
function runQuery(host: RunFunctionOptions["host"], call: FunctionCall): Promise<QueryAnswer> {
  return new Promise((resolve) => host.startQueryBatch([call], (_, answer) => resolve(answer)));
}

export function resultOf(outcome: Outcome): RunResult {
  const { logLines } = outcome;
  if (outcome.ok) return { logLines, result: { ok: true, value: JSON.parse(outcome.value) } };
  const { error: { message, data, stack } } = outcome;
  const error = { kind: outcome.error.kind, message, data, ...(stack !== undefined && { stack }) };
  return { logLines, result: { ok: false, error } };
}

async function readsOf(calls: SystemCalls, readSet: ReadSet): Promise<ReadSummary[]> {
  const spaces = await calls.query(system.spaces, {});
  return Object.entries(readSet).map(([space, intervals]) => {
    const { table, index } = spaces[space] ?? { table: space, index: "" };
    const points = intervals.filter((interval) => interval.length === 1);
    return {
      table,
      index,
      points: points.length,
      ranges: intervals.length - points.length,
      ids: index === "by_id" ? points.slice(0, IDS_MAX).map(([key]) => key) : [],
    };
  });
}
