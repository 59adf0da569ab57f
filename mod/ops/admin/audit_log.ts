/** Writes the audit log (rows: `isolate_functions/audit.ts`), records requests in it, and deletes old entries. */
import type { Context, MiddlewareHandler } from "hono";
import { z } from "zod";
import type { FunctionCall } from "../../functions/host_port.ts";
import { internalMainAction, type MainAction } from "../../functions/main_actions.ts";
import type { Outcome } from "../../functions/outcome.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { opsLimits } from "../limits.ts";
import type { AdminEnv } from "./admin_guard.ts";
import { system } from "./system.ts";

/** A changed setting. Secrets are recorded as set or not set only. */
export interface SettingChange {
  readonly setting: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface AuditEntry {
  readonly admin: string;
  readonly session: string | null;
  readonly action: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** `ok`, or the error code. */
  readonly outcome: string;
  /** Client address of the request; by default the session's. */
  readonly address?: string;
  readonly changes?: readonly SettingChange[];
}

export const AUDIT_CLEAN_PATH = "_system/admin:cleanAllAudit";

export class AuditLog {
  readonly #calls: SystemCalls;
  readonly #log: Log;
  readonly #now: () => number;

  constructor(
    { calls, log, now = Date.now }: {
      readonly calls: SystemCalls;
      readonly log: Log;
      readonly now?: () => number;
    },
  ) {
    this.#calls = calls;
    this.#log = log;
    this.#now = now;
  }

  /** Never rejects: the action has already happened, so a failure is logged. */
  async record({ changes, ...entry }: AuditEntry): Promise<void> {
    try {
      await this.#calls.mutate(system.note, {
        ...entry,
        ...(changes !== undefined && { changes: [...changes] }),
      });
    } catch (error) {
      const { admin, action } = entry;
      this.#log("error", "Cannot write to the audit log", { admin, action, error });
    }
  }

  /** Records an action run by the main process. Never rejects. */
  async recordAction({ udfPath, args, identity }: FunctionCall, outcome: Outcome): Promise<void> {
    await this.record({
      admin: identity.adminId ?? "",
      session: identity.sessionId,
      action: udfPath,
      args,
      outcome: outcome.ok ? "ok" : outcome.error.data?.code ?? "failed",
    });
  }

  /** Actions that delete old rows, and views of former administrators, by path. Each batch is a separate mutation. */
  get actions(): ReadonlyMap<string, MainAction> {
    return new Map([[
      AUDIT_CLEAN_PATH,
      internalMainAction(z.strictObject({}), async () => {
        const before = this.#now() - opsLimits.auditKeptMs;
        while (await this.#calls.mutate(system.cleanAudit, { before }));
        for (let after: string | null = ""; after !== null;) {
          after = await this.#calls.mutate(system.cleanViews, { after }) as string | null;
        }
      }),
    ]]);
  }
}

export interface AuditRequests {
  readonly log: Pick<AuditLog, "record">;
  readonly clientOf: (c: Context) => string;
}

/** GET requests that copy data out of the database. */
const TAKES_DATA = /\/(?:backups|scheduled-backups|export)\/[^/]+$/;

/** Middleware behind the guard. Requests are recorded when answered, failed ones with their error code. */
export function auditRequests({ log, clientOf }: AuditRequests): MiddlewareHandler<AdminEnv> {
  return async (c, next) => {
    const { method } = c.req;
    const recorded = method !== "GET" && method !== "HEAD" || TAKES_DATA.test(c.req.path);
    if (!recorded) return await next();
    let outcome = "failed";
    try {
      await next();
      outcome = c.error === undefined ? outcomeOf(c.res.status) : codeOf(c.error);
    } finally {
      // Requests without a route, and those that the route reports as dry runs, have no effect.
      if (outcome !== "not_found" && c.get("noted")?.["dryRun"] !== true) {
        // A query parameter must not name another actor.
        const { by: _, ...query } = c.req.query();
        await log.record({
          admin: c.get("adminId"),
          session: c.get("sessionId") || null,
          action: `${method} ${c.req.path}`,
          args: { ...query, ...c.get("noted"), ...by(c.get("deployKey")) },
          outcome,
          address: clientOf(c),
        });
      }
    }
  };
}

function by(deployKey: string | undefined): { readonly by?: string } {
  return deployKey === undefined ? {} : { by: `deploy key ${deployKey}` };
}

function outcomeOf(status: number): string {
  if (status < 400) return "ok";
  return status === 404 ? "not_found" : String(status);
}

function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown }).code;
  return typeof code === "string" ? code : "failed";
}
