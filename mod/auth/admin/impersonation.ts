/** Sessions in which an administrator acts as a user (RT6, AD2). */
import type { AccountParts } from "../accounts.ts";
import type { Tokens } from "../tokens/session_tokens.ts";
import { system } from "../system_calls.ts";

export interface ImpersonationRequest {
  readonly userId: string;
  readonly adminId: string;
  /** The administrator's own session. The impersonation ends with it. */
  readonly adminSession: string;
  /** Fixed expiry of the session; refreshing does not extend it. */
  readonly lifetimeMs: number;
  readonly userAgent: string | null;
}

export class Impersonation {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Opens an impersonation session; `null` if the user does not exist or the administrator's session has ended. */
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
    return session === null ? null : await sessions.issue(session, { refreshToken, at: row.now });
  }
}
