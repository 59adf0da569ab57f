/** Creates administrators, manages their sessions and checks their access, for setup and the command line. */
import { z } from "zod";
import { type AdminRole, adminRoles } from "../../functions/admin_roles.ts";
import type { Id } from "../../functions/api/service.ts";
import { type AuthDoc, type AuthQueryCtx, internalMutation, internalQuery } from "../tables.ts";
import { adminByEmail, dropFactors, setPasswordHash, userByEmail } from "./account_rows.ts";
import { passkeysOf } from "./factors/factor_rows.ts";
import {
  endSessionsOf,
  newSessionSchema,
  type OpenedSession,
  openSession,
  sessionsOf,
} from "./session_rows.ts";

/** Whether no administrator exists yet. */
export const needsSetup = internalQuery({
  args: {},
  handler: async (ctx) => await ctx.db.query("_admins").first() === null,
});

/** Creates the first administrator and opens a session; `null` if one exists. */
export const setUpFirstAdmin = internalMutation({
  args: { email: z.string(), passwordHash: z.string(), session: newSessionSchema },
  handler: async (ctx, { email, passwordHash, session }): Promise<OpenedSession | null> => {
    if (await ctx.db.query("_admins").first() !== null) return null;
    const admin = await ctx.db.insert("_admins", { email });
    await setPasswordHash(ctx, admin, passwordHash);
    return await openSession(ctx, { admin }, { session });
  },
});

/** Creates an administrator; `null` if the address is taken. */
export const createAdmin = internalMutation({
  args: { email: z.string(), passwordHash: z.string(), role: z.enum(adminRoles).optional() },
  handler: async (ctx, { email, passwordHash, role = "owner" }): Promise<Id<"_admins"> | null> => {
    if (await adminByEmail(ctx, email) !== null) return null;
    const admin = await ctx.db.insert("_admins", { email, role });
    await setPasswordHash(ctx, admin, passwordHash);
    return admin;
  },
});

/** Effects of a password reset. */
export interface PasswordReset {
  /** Number of ended sessions. */
  readonly ended: number;
  /** Number of passkeys, which still sign in. */
  readonly passkeys: number;
}

/** Sets an administrator's password and ends their sessions, but keeps their factors. `null` if unknown. */
export const setAdminPassword = internalMutation({
  args: { email: z.string(), passwordHash: z.string() },
  handler: async (ctx, { email, passwordHash }): Promise<PasswordReset | null> => {
    const admin = await adminByEmail(ctx, email);
    if (admin === null) return null;
    await setPasswordHash(ctx, admin._id, passwordHash);
    const ended = await endSessionsOf(ctx, { admin: admin._id });
    return { ended, passkeys: (await passkeysOf(ctx, admin._id)).length };
  },
});

export interface AdminSummary {
  readonly adminId: Id<"_admins">;
  readonly email: string;
  readonly createdAt: number;
  readonly sessions: number;
}

export const listAdmins = internalQuery({
  args: {},
  handler: async (ctx): Promise<AdminSummary[]> => {
    const summaries: AdminSummary[] = [];
    for (const admin of await ctx.db.query("_admins").take(1_000)) {
      const sessions = (await sessionsOf(ctx, { admin: admin._id })).length;
      summaries.push({ adminId: admin._id, email: admin.email, createdAt: admin._creationTime, sessions });
    }
    return summaries;
  },
});

/** Ends the sessions of the administrator and the user with this address. Returns their number; `null` for neither. */
export const revokeSessions = internalMutation({
  args: { email: z.string() },
  handler: async (ctx, { email }): Promise<number | null> => {
    const admin = await adminByEmail(ctx, email);
    const user = await userByEmail(ctx, email);
    if (admin === null && user === null) return null;
    return (admin === null ? 0 : await endSessionsOf(ctx, { admin: admin._id })) +
      (user === null ? 0 : await endSessionsOf(ctx, { user: user._id }));
  },
});

/** Removes the second factors and passkeys of the administrator and the user with this address. Returns whether one of them exists. */
export const removeFactors = internalMutation({
  args: { email: z.string() },
  handler: async (ctx, { email }): Promise<boolean> => {
    const admin = await adminByEmail(ctx, email);
    const user = await userByEmail(ctx, email);
    if (admin !== null) await dropFactors(ctx, { admin: admin._id });
    if (user !== null) await dropFactors(ctx, { user: user._id });
    return admin !== null || user !== null;
  },
});

/**
 * Returns the caller's role; `null` unless the administrator session exists in this snapshot. Its access token never outlives
 * the session.
 */
export async function callerRole(ctx: AuthQueryCtx): Promise<AdminRole | null> {
  const [admin, sessionId] = [ctx.auth.adminId(), ctx.auth.sessionId()];
  if (admin === null || sessionId === null) return null;
  const id = ctx.db.normalizeId("_sessions", sessionId);
  const session = id === null ? null : await ctx.db.get(id);
  return session?.admin === admin ? await storedRole(ctx, admin) : null;
}

/** Administrators of earlier versions have no role and are owners. */
export function roleOf({ role = "owner" }: AuthDoc<"_admins">): AdminRole {
  return role;
}

/** Returns the role of an administrator; `null` if there is none with this id. */
export const adminRole = internalQuery({
  args: { adminId: z.string() },
  handler: async (ctx, { adminId }): Promise<AdminRole | null> => {
    const id = ctx.db.normalizeId("_admins", adminId);
    return id === null ? null : await storedRole(ctx, id);
  },
});

async function storedRole(ctx: AuthQueryCtx, id: Id<"_admins">): Promise<AdminRole | null> {
  const admin = await ctx.db.get(id);
  return admin === null ? null : roleOf(admin);
}
