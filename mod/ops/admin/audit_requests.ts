/** Records requests below `/api/admin` that change or export data in the audit log. */
import type { Context, MiddlewareHandler } from "hono";
import type { AdminEnv } from "./admin_guard.ts";
import type { AuditLog } from "./audit_log.ts";

export interface AuditRequests {
  readonly log: Pick<AuditLog, "record">;
  /** Returns the client address of a request. */
  readonly clientOf: (c: Context) => string;
}

/** GET requests that copy data out of the database. */
const TAKES_DATA = /\/(?:backups|scheduled-backups|export)\/[^/]+$/;

/** Middleware behind the guard. Requests are recorded when answered, failed ones with their error code. */
export function auditRequests({ log, clientOf }: AuditRequests): MiddlewareHandler<AdminEnv> {
  return async (c, next) => {
    const { method } = c.req;
    const noted = method !== "GET" && method !== "HEAD" || TAKES_DATA.test(c.req.path);
    if (!noted) return await next();
    let outcome = "failed";
    try {
      await next();
      outcome = c.error === undefined ? outcomeOf(c.res.status) : codeOf(c.error);
    } finally {
      // Requests without a route have no effect.
      if (outcome !== "not_found") {
        await log.record({
          admin: c.get("adminId"),
          session: c.get("sessionId") || null,
          action: `${method} ${c.req.path}`,
          args: { ...c.req.query(), ...c.get("noted"), ...by(c.get("deployKey")) },
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
