/** Identifies the caller of functions about the caller's own account. */
import { UserError } from "../../errors.ts";
import type { Id } from "../../functions/api/service.ts";
import type { AuthDoc, AuthMutationCtx, AuthQueryCtx } from "../tables.ts";
import type { Owner } from "./session_rows.ts";

export function caller(ctx: AuthQueryCtx): Owner {
  const user = ctx.auth.userId();
  const admin = ctx.auth.adminId();
  if (user !== null) return { user };
  if (admin !== null) return { admin };
  throw notSignedIn();
}

export function signedInUser(ctx: AuthQueryCtx): Id<"_users"> {
  const user = ctx.auth.userId();
  if (user === null) throw notSignedIn();
  return user;
}

export function currentSession(ctx: AuthQueryCtx): Id<"_sessions"> | null {
  const session = ctx.auth.sessionId();
  return session === null ? null : ctx.db.normalizeId("_sessions", session);
}

/** An impersonating administrator can read the account but not change credentials; ending that session is allowed. */
export async function refuseImpersonator(
  ctx: AuthMutationCtx,
  { mayEnd = null }: { readonly mayEnd?: Id<"_sessions"> | null } = {},
): Promise<void> {
  const id = currentSession(ctx);
  const session: AuthDoc<"_sessions"> | null = id === null ? null : await ctx.db.get(id);
  if (session?.impersonatedBy !== undefined && session._id !== mayEnd) {
    throw new UserError("impersonated", "An impersonated session cannot change the account");
  }
}

export function notSignedIn(): UserError {
  return new UserError("not_signed_in", "Sign in first");
}
