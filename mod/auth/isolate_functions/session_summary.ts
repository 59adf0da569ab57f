/** A session as shown to administrators. */
import type { Id } from "../../functions/api/service.ts";
import type { AuthDoc } from "../tables.ts";

export interface SessionSummary {
  readonly sessionId: Id<"_sessions">;
  readonly createdAt: number;
  readonly refreshedAt: number;
  readonly expiresAt: number;
  readonly userAgent: string | null;
  /** For administrators only. */
  readonly address: string | null;
  /** The impersonating administrator; `null` for the user's own session. */
  readonly impersonatedBy: Id<"_admins"> | null;
}

export function sessionSummary(session: AuthDoc<"_sessions">): SessionSummary {
  return {
    sessionId: session._id,
    createdAt: session._creationTime,
    refreshedAt: session.refreshedAt,
    expiresAt: session.expiresAt,
    userAgent: session.userAgent ?? null,
    address: session.address ?? null,
    impersonatedBy: session.impersonatedBy ?? null,
  };
}
