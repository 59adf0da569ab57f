/** Calls the app's hooks for new users and sign-ins within the transaction. If a hook throws, everything is rolled back. */
import type { Id, SystemMutationCtx } from "../../functions/api/service.ts";
import type { AuthDoc, AuthModel, AuthMutationCtx } from "../tables.ts";
import { anonymousUserOf, endAnonymity } from "./anonymous_rows.ts";
import { dropDevices } from "./device_rows.ts";
import { endSessionsOf, type NewSession, type OpenedSession, openSession } from "./session_rows.ts";

/** The argument of the hooks: `authEventArgs` in `syncline/server`. */
export interface UserEvent {
  readonly user: Id<"_users">;
  readonly by: "password" | "mail" | "provider" | "token" | "administrator" | "passkey" | "anonymous";
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

/** A user who has signed up. */
export interface AdmittedUser {
  readonly user: Id<"_users">;
  /** Whether the user was anonymous before. */
  readonly promoted: boolean;
}

/** Makes a user: the anonymous user of the prior session, who keeps id and documents, or a new one. */
export async function admitUser(
  ctx: AuthMutationCtx,
  user: NewUser,
  { priorSession, ...source }: Omit<UserEvent, "user" | "by"> & Pick<NewSession, "priorSession">,
): Promise<AdmittedUser> {
  const anonymous = await anonymousUserOf(ctx, priorSession);
  if (anonymous === null) return { user: await insertUser(ctx, user, source), promoted: false };
  await ctx.db.patch(anonymous._id, user);
  return await promote(ctx, anonymous._id);
}

/** Makes an anonymous user an account. Its sessions end, because another person may have given the browser one. */
export async function promote(ctx: AuthMutationCtx, user: Id<"_users">): Promise<AdmittedUser> {
  await endAnonymity(ctx, user);
  await endSessionsOf(ctx, { user });
  // The device of that person must not be known to the account.
  await dropDevices(ctx, { user });
  return { user, promoted: true };
}

/** Call when all rows of an admitted user are stored. */
export async function userAdmitted(
  ctx: AuthMutationCtx,
  event: UserEvent,
  { promoted }: Pick<AdmittedUser, "promoted">,
): Promise<void> {
  if (promoted) await userPromoted(ctx, event, event.user);
  else await userCreated(ctx, event);
}

/** The account of `event` takes over from an anonymous user, which it was itself unless the account existed before. */
function userPromoted(
  ctx: AuthMutationCtx,
  event: UserEvent,
  anonymousUser: Id<"_users">,
): Promise<void> {
  return notify(ctx, "auth:onUserPromoted", event, { anonymousUser });
}

/** Call when all rows of a new user are stored. */
export function userCreated(ctx: AuthMutationCtx, event: UserEvent): Promise<void> {
  return notify(ctx, "auth:onUserCreated", event);
}

/**
 * Opens a session of a user who needs no further factor. `factorAt` is when one was proved. An anonymous user of the prior session is
 * signed out: the app's hook has taken what it keeps.
 */
export async function completeSignIn(
  ctx: AuthMutationCtx,
  event: UserEvent,
  session: NewSession,
  factor: { readonly factorAt?: number } = {},
): Promise<OpenedSession> {
  const opened = await openSession(ctx, { user: event.user }, { session, ...factor });
  const anonymous = await anonymousUserOf(ctx, session.priorSession);
  if (anonymous !== null && anonymous._id !== event.user) {
    await userPromoted(ctx, event, anonymous._id);
    await endSessionsOf(ctx, { user: anonymous._id });
  }
  await notify(ctx, "auth:onSignIn", event);
  return opened;
}

async function notify(
  ctx: AuthMutationCtx,
  path: string,
  { user, by, provider = "", issuer = "", claims = {} }: UserEvent,
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  if (!inspectorOf(ctx).has(path)) return;
  const event = { user, by, provider: provider || null, issuer: issuer || null, claims };
  await ctx.runMutation(path, { ...event, ...more });
}

/** The app's hooks, available in the `ctx` of every system function. */
function inspectorOf(ctx: AuthMutationCtx): SystemMutationCtx<AuthModel>["inspector"] {
  return (ctx as unknown as SystemMutationCtx<AuthModel>).inspector;
}
