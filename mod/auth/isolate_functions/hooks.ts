/** Calls the app's hooks for new users and sign-ins within the transaction. If a hook throws, everything is rolled back. */
import type { Id, SystemMutationCtx } from "../../functions/api/service.ts";
import type { AuthDoc, AuthModel, AuthMutationCtx } from "../tables.ts";
import { type NewSession, type OpenedSession, openSession } from "./session_rows.ts";

/** The argument of the hooks: `authEventArgs` in `syncline/server`. */
export interface UserEvent {
  readonly user: Id<"_users">;
  readonly by: "password" | "mail" | "provider" | "token" | "administrator" | "passkey";
  readonly provider?: string | undefined;
  readonly issuer?: string | undefined;
  readonly claims?: Record<string, unknown> | undefined;
}

type NewUser = Pick<AuthDoc<"_users">, "email" | "emailVerified" | "name">;

/** Stores a new user with the app's initial profile. `source` is how the user arrived. */
export async function insertUser(
  ctx: AuthMutationCtx,
  user: NewUser,
  { provider = "", issuer = "", claims = {} }: Omit<UserEvent, "user" | "by"> = {},
): Promise<Id<"_users">> {
  const source = { provider: provider || null, issuer: issuer || null, claims };
  const profile = inspectorOf(ctx).newProfile(source);
  return await ctx.db.insert("_users", { ...user, ...(profile !== undefined && { profile }) });
}

/** Call when all rows of a new user are stored. */
export function userCreated(ctx: AuthMutationCtx, event: UserEvent): Promise<void> {
  return notify(ctx, "auth:onUserCreated", event);
}

/** Opens a session of a user who needs no further factor. `factorAt` is when one was proved. */
export async function completeSignIn(
  ctx: AuthMutationCtx,
  event: UserEvent,
  session: NewSession,
  factor: { readonly factorAt?: number } = {},
): Promise<OpenedSession> {
  const opened = await openSession(ctx, { user: event.user }, { session, ...factor });
  await notify(ctx, "auth:onSignIn", event);
  return opened;
}

async function notify(
  ctx: AuthMutationCtx,
  path: string,
  { user, by, provider = "", issuer = "", claims = {} }: UserEvent,
): Promise<void> {
  if (!inspectorOf(ctx).has(path)) return;
  await ctx.runMutation(path, { user, by, provider: provider || null, issuer: issuer || null, claims });
}

/** The app's hooks, available in the `ctx` of every system function. */
function inspectorOf(ctx: AuthMutationCtx): SystemMutationCtx<AuthModel>["inspector"] {
  return (ctx as unknown as SystemMutationCtx<AuthModel>).inspector;
}
