/** Tells the app of users that are made and sign in, in the same transaction: what it throws undoes everything. */
import type { Id, SystemMutationCtx } from "../../../functions/api/service.ts";
import type { AuthModel, AuthMutationCtx } from "../../tables.ts";
import { type NewSession, type OpenedSession, openSession } from "../session_rows.ts";

/** What the app is told; the fields are those of `userEvent` in `syncline/server`. */
export interface UserEvent {
  readonly user: Id<"_users">;
  readonly by: "password" | "mail" | "provider" | "token" | "administrator";
  readonly provider?: string | undefined;
  readonly issuer?: string | undefined;
  readonly claims?: Record<string, unknown> | undefined;
}

/** To be called when all that belongs to a new user is stored. */
export function userCreated(ctx: AuthMutationCtx, event: UserEvent): Promise<void> {
  return tell(ctx, "auth:onUserCreated", event);
}

/** Opens a session of a user who has shown who they are. */
export async function signIn(
  ctx: AuthMutationCtx,
  event: UserEvent,
  session: NewSession,
): Promise<OpenedSession> {
  const opened = await openSession(ctx, { user: event.user }, { session });
  await tell(ctx, "auth:onSignIn", event);
  return opened;
}

async function tell(
  ctx: AuthMutationCtx,
  path: string,
  { user, by, provider = "", issuer = "", claims = {} }: UserEvent,
): Promise<void> {
  // Which functions the app has is known to the `ctx` of every function of the service.
  const { inspector } = ctx as unknown as Pick<SystemMutationCtx<AuthModel>, "inspector">;
  if (!inspector.has(path)) return;
  await ctx.runMutation(path, { user, by, provider: provider || null, issuer: issuer || null, claims });
}
