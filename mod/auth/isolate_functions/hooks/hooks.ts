/** Tells the app of users that are made and sign in, in the same transaction: what it throws undoes everything. */
import type { Id, SystemMutationCtx } from "../../../functions/api/service.ts";
import type { AuthDoc, AuthModel, AuthMutationCtx } from "../../tables.ts";
import { type NewSession, type OpenedSession, openSession } from "../session_rows.ts";

/** What the app is told; the fields are those of `userEvent` in `syncline/server`. */
export interface UserEvent {
  readonly user: Id<"_users">;
  readonly by: "password" | "mail" | "provider" | "token" | "administrator";
  readonly provider?: string | undefined;
  readonly issuer?: string | undefined;
  readonly claims?: Record<string, unknown> | undefined;
}

/** A user to be stored. */
type NewUser = Pick<AuthDoc<"_users">, "email" | "emailVerified" | "name">;

/** Stores a new user, with what the app's profile begins with. `source`: how they come. */
export async function insertUser(
  ctx: AuthMutationCtx,
  user: NewUser,
  { provider = "", issuer = "", claims = {} }: Omit<UserEvent, "user" | "by"> = {},
): Promise<Id<"_users">> {
  const source = { provider: provider || null, issuer: issuer || null, claims };
  const profile = inspectorOf(ctx).newProfile(source);
  return await ctx.db.insert("_users", { ...user, ...(profile !== undefined && { profile }) });
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
  if (!inspectorOf(ctx).has(path)) return;
  await ctx.runMutation(path, { user, by, provider: provider || null, issuer: issuer || null, claims });
}

/** What the app has is known to the `ctx` of every function of the service. */
function inspectorOf(ctx: AuthMutationCtx): SystemMutationCtx<AuthModel>["inspector"] {
  return (ctx as unknown as SystemMutationCtx<AuthModel>).inspector;
}
