/** The query console: runs a query written by an administrator at a snapshot, and reports what it read. */
import { z } from "zod";
import type { RunUse } from "../../functions/host_port.ts";
import type { Identity } from "../../functions/identity.ts";
import { isolateLimits } from "../../functions/limits.ts";
import { type MainAction, unauditedAdminAction } from "../../functions/main_actions.ts";
import type { Outcome } from "../../functions/outcome.ts";
import type { ReadTrace } from "../../functions/read_trace.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { AuditLog } from "./audit_log.ts";
import { identityOf, resultOf, runAs, type RunResult } from "./run_function.ts";

/** A run of the console. */
export interface ConsoleRun extends RunResult {
  /** Running time in milliseconds, without the start of its process. */
  readonly ms: number;
  /** The snapshot; `null` if the query was not run to its end. */
  readonly ts: number | null;
  readonly use: RunUse | null;
  readonly reads: readonly ReadTrace[];
}

export interface QueryConsoleOptions {
  /** Runs a query that is not part of the app. */
  readonly run: (source: string, identity: Identity) => Promise<
    Omit<ConsoleRun, keyof RunResult> & { readonly outcome: Outcome }
  >;
  readonly calls: SystemCalls;
  readonly audit: Pick<AuditLog, "record">;
}

const consoleArgs = z.union([
  z.strictObject({
    /** A TypeScript module whose default export is the query, or the function. */
    source: z.string().trim().min(1).max(isolateLimits.adHocCharsMax),
    as: runAs,
  }),
  z.strictObject({
    /** A query of the app. */
    path: z.string().min(1),
    args: z.record(z.string(), z.unknown()),
    as: runAs,
  }).refine((asked) => sourceOf(asked).length <= isolateLimits.adHocCharsMax, "The arguments are too long"),
]);

function sourceOf(
  asked: { readonly source: string } | { readonly path: string; readonly args: Record<string, unknown> },
): string {
  if ("source" in asked) return asked.source;
  return `async (ctx) => await ctx.runQuery(${JSON.stringify(asked.path)}, ${JSON.stringify(asked.args)})`;
}

/** The audit log records the tables that were read and how much, not the query, which may contain personal data. */
export function consoleAction({ run, calls, audit }: QueryConsoleOptions): MainAction {
  return unauditedAdminAction(consoleArgs, async ({ as, ...asked }, identity): Promise<ConsoleRun> => {
    const source = sourceOf(asked);
    const { outcome, ms, ts, use, reads } = await run(source, await identityOf(calls, as));
    await audit.record({
      admin: identity.adminId ?? "",
      session: identity.sessionId,
      action: "_admin/functions:console",
      args: {
        ...("path" in asked ? { path: asked.path } : { characters: source.length }),
        tables: [...new Set(reads.map(({ table }) => table))].join(", "),
        documents: use?.documentsRead ?? 0,
        ...as !== null && as,
      },
      outcome: outcome.ok ? "ok" : "failed",
    });
    return { ...resultOf(outcome), ms, ts, use, reads };
  });
}
