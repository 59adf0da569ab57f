/** Functions with which administrators view and manage users, at `_admin/users:<name>`. See also `admin/user_actions.ts`. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { type Id, paginationOpts, type PaginationResult } from "../../functions/api/service.ts";
import { authLimits } from "../limits.ts";
import { normalizedEmail } from "../email_address.ts";
import {
  adminMutation,
  adminQuery,
  type AuthDoc,
  type AuthMutationCtx,
  type AuthQueryCtx,
} from "../tables.ts";
import { dropChanges, passwordHashOf, userByEmail } from "./account_rows.ts";
import { needsSecondStep } from "./factors/factor_rows.ts";
import { type OwnPasskey, shownPasskeys } from "./factors/own_passkeys.ts";
import { profileSchema, setProfile } from "./user_changes.ts";
import { endAnonymity, isAnonymous } from "./anonymous_rows.ts";
import {
  endSession,
  endSessionsOf,
  sessionsOf,
  type SessionSummary,
  sessionSummary,
} from "./session_rows.ts";

/** A user as shown to administrators. */
export interface UserSummary {
  readonly userId: Id<"_users">;
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly name: string | null;
  /** The app's profile of the user; `null` if it is empty. */
  readonly profile: Readonly<Record<string, unknown>> | null;
  readonly createdAt: number;
  readonly hasPassword: boolean;
  /** Whether the user signed in without an account. */
  readonly anonymous: boolean;
  /** Number of sessions, including expired ones that are not deleted yet. */
  readonly sessions: number;
}

/** Returns a page of users, newest first, or one bounded page of matches of `search` (words, an address or an id). */
export const list = adminQuery({
  args: {
    paginationOpts,
    search: z.string().max(authLimits.emailCharsMax).optional(),
    order: z.enum(["newest", "oldest", "email"]).optional(),
  },
  handler: async (ctx, args): Promise<PaginationResult<UserSummary>> => {
    const { paginationOpts, search = "", order = "newest" } = args;
    const wanted = search.trim();
    if (wanted !== "") {
      const page = await Promise.all((await found(ctx, wanted)).map((user) => summary(ctx, user)));
      return { page, isDone: true, continueCursor: "" };
    }
    const users = ctx.db.query("_users");
    const ordered = order === "email"
      ? users.withIndex("by_email")
      : users.order(order === "newest" ? "desc" : "asc");
    const { page, ...rest } = await ordered.paginate(paginationOpts);
    return { ...rest, page: await Promise.all(page.map((user) => summary(ctx, user))) };
  },
});

/** Maximum number of users whose addresses are returned at once. */
const EMAILS_MAX = 200;

/** Returns the email addresses of users by ID. Users without an address, and unknown ones, are missing. */
export const emails = adminQuery({
  args: { userIds: z.array(z.string()).max(EMAILS_MAX) },
  handler: async (ctx, { userIds }): Promise<Record<string, string>> => {
    const users = await Promise.all(userIds.map((userId) => {
      const id = ctx.db.normalizeId("_users", userId);
      return id === null ? null : ctx.db.get(id);
    }));
    return Object.fromEntries(
      users.flatMap((user) => user?.email === undefined ? [] : [[user._id, user.email]]),
    );
  },
});

interface UserDetails extends UserSummary {
  readonly list: readonly SessionSummary[];
  /** Whether sign-ins need a second factor. */
  readonly secondFactor: boolean;
  readonly passkeys: readonly OwnPasskey[];
}

/** Returns a user with their sessions and passkeys; `null` if the user does not exist. */
export const get = adminQuery({
  args: { userId: z.string() },
  handler: async (ctx, { userId }): Promise<UserDetails | null> => {
    const id = ctx.db.normalizeId("_users", userId);
    const user = id === null ? null : await ctx.db.get(id);
    if (user === null) return null;
    const sessions = (await sessionsOf(ctx, { user: user._id })).reverse().map(sessionSummary);
    const secondFactor = await needsSecondStep(ctx, user._id);
    const passkeys = await shownPasskeys(ctx, user._id);
    return { ...await summary(ctx, user), list: sessions, secondFactor, passkeys };
  },
});

/** Changes the given fields; `null` removes the name, the address or a profile field. */
export const edit = adminMutation({
  args: {
    userId: z.string(),
    email: z.string().nullable().optional(),
    name: z.string().trim().max(authLimits.nameCharsMax).nullable().optional(),
    emailVerified: z.boolean().optional(),
    profile: profileSchema.optional(),
  },
  handler: async (ctx, { userId, email, name, emailVerified, profile }): Promise<null> => {
    const user = await existing(ctx, userId);
    const address = email === undefined ? undefined : await freeAddress(ctx, email, user);
    if (address !== undefined && address !== (user.email ?? null)) await dropChanges(ctx, user._id);
    const verified = emailVerified ?? (address === null ? false : undefined);
    await ctx.db.patch(user._id, {
      ...(address !== undefined && { email: address ?? undefined }),
      ...(name !== undefined && { name: name === null || name === "" ? undefined : name }),
      ...(verified !== undefined && { emailVerified: verified }),
    });
    if (typeof address === "string") await endAnonymity(ctx, user._id);
    if (profile !== undefined) await setProfile(ctx, user._id, profile);
    return null;
  },
});

export const endOneSession = adminMutation({
  args: { sessionId: z.string() },
  handler: async (ctx, { sessionId }): Promise<null> => {
    const id = ctx.db.normalizeId("_sessions", sessionId);
    const session = id === null ? null : await ctx.db.get(id);
    if (session?.user === undefined) throw new UserError("session_not_found", "The session does not exist");
    await endSession(ctx, session._id);
    return null;
  },
});

export const endSessions = adminMutation({
  args: { userId: z.string() },
  handler: async (ctx, { userId }): Promise<number> =>
    await endSessionsOf(ctx, { user: (await existing(ctx, userId))._id }),
});

async function found(ctx: AuthQueryCtx, text: string): Promise<AuthDoc<"_users">[]> {
  const id = ctx.db.normalizeId("_users", text);
  if (id !== null) {
    const user = await ctx.db.get(id);
    return user === null ? [] : [user];
  }
  const users = new Map<string, AuthDoc<"_users">>();
  const exact = await userByEmail(ctx, normalizedEmail(text) ?? "");
  if (exact !== null) return [exact];
  const max = authLimits.usersFoundMax;
  const byEmail = await ctx.db.query("_users")
    .withSearchIndex("search_email", (q) => q.search("email", text)).take(max);
  const byName = await ctx.db.query("_users")
    .withSearchIndex("search_name", (q) => q.search("name", text)).take(max);
  for (const user of [...byEmail, ...byName]) users.set(user._id, user);
  return [...users.values()].slice(0, max);
}

async function summary(ctx: AuthQueryCtx, user: AuthDoc<"_users">): Promise<UserSummary> {
  const { _id, _creationTime, email = null, emailVerified, name = null, profile = null } = user;
  return {
    userId: _id,
    email,
    emailVerified,
    name,
    profile,
    createdAt: _creationTime,
    hasPassword: await passwordHashOf(ctx, _id) !== null,
    anonymous: await isAnonymous(ctx, _id),
    sessions: (await sessionsOf(ctx, { user: _id })).length,
  };
}

/** Returns the user with an id. Throws `user_not_found`. */
export async function existing(ctx: AuthQueryCtx, userId: string): Promise<AuthDoc<"_users">> {
  const id = ctx.db.normalizeId("_users", userId);
  const user = id === null ? null : await ctx.db.get(id);
  if (user === null) throw new UserError("user_not_found", "No user has this id");
  return user;
}

async function freeAddress(
  ctx: AuthMutationCtx,
  email: string | null,
  user: AuthDoc<"_users">,
): Promise<string | null> {
  if (email === null) return null;
  const address = normalizedEmail(email);
  if (address === null) throw new UserError("invalid_email", "The email address is not valid");
  const holder = await userByEmail(ctx, address);
  if (holder === null || holder._id === user._id) return address;
  throw new UserError("email_in_use", "An account with this email address already exists");
}
