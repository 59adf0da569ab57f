/** Sessions in which an administrator sees what a user sees (RT6, AD2). */
import type { AccountParts } from "../accounts.ts";
import type { Tokens } from "../tokens/session_tokens.ts";
import { system } from "../system_calls.ts";

export interface ImpersonationRequest {
  readonly userId: string;
  readonly adminId: string;
  /** The administrator's own session, with which this one ends. */
  readonly adminSession: string;
  /** Until the session ends, whatever is refreshed meanwhile. */
  readonly lifetimeMs: number;
  readonly userAgent: string | null;
}

export class Impersonation {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Opens such a session; `null` when there is no such user, or the administrator's session has ended. */
  async impersonate(
    { userId, adminId, adminSession, lifetimeMs, userAgent }: ImpersonationRequest,
  ): Promise<Tokens | null> {
    const { calls, sessions } = this.#parts;
    const { row, refreshToken } = sessions.prepare({ lifetimeMs, userAgent });
    const session = await calls.mutate(system.impersonate, {
      userId,
      adminId,
      adminSession,
      session: row,
    });
    return session === null ? null : sessions.issue(session, { refreshToken, at: row.now });
  }
}
