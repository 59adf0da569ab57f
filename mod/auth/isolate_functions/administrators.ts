/** Functions to manage administrators (`_admin/administrators:`). Those that need main are in `administrator_actions.ts`. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import type { Id } from "../../functions/api/service.ts";
import { type AdminRole, adminRoles } from "../../functions/admin_roles.ts";
import { authLimits } from "../limits.ts";
import {
  adminMutation,
  adminQuery,
  type AuthDoc,
  type AuthMutationCtx,
  type AuthQueryCtx,
  internalMutation,
} from "../tables.ts";
import { dropFactors, passwordHashOf, setPasswordHash } from "./account_rows.ts";
import { dropDevices } from "./device_rows.ts";
import { roleOf } from "./admins.ts";
import { needsSecondStep, passkeysOf } from "./factors/factor_rows.ts";
import { notSignedIn } from "./own_account.ts";
import {
  endSession,
  endSessionsOf,
  sessionsOf,
  type SessionSummary,
  sessionSummary,
} from "./session_rows.ts";

export interface AdministratorSummary {
  readonly adminId: Id<"_admins">;
  readonly email: string;
  readonly role: AdminRole;
  readonly createdAt: number;
  readonly sessions: number;
  /** Whether sign-ins with the password need a second factor. */
  readonly secondFactor: boolean;
  /** Number of passkeys. */
  readonly passkeys: number;
  /** Whether it is the caller. */
  readonly you: boolean;
}

/** Returns all administrators, oldest first. */
export const list = adminQuery({
  args: {},
  handler: async (ctx): Promise<AdministratorSummary[]> => {
    const admins = await ctx.db.query("_admins").take(authLimits.adminsShownMax);
    return await Promise.all(admins.map((admin) => summary(ctx, admin)));
  },
});

/** Returns the caller. */
export const me = adminQuery({
  args: {},
  handler: async (ctx): Promise<AdministratorSummary | null> => {
    const admin = await ctx.db.get(callingAdmin(ctx));
    return admin === null ? null : await summary(ctx, admin);
  },
});

export interface AdministratorSession extends SessionSummary {
  /** Whether this is the caller's current session. */
  readonly current: boolean;
}

export const sessions = adminQuery({
  args: { adminId: z.string() },
  handler: async (ctx, { adminId }): Promise<AdministratorSession[]> => {
    const { _id: admin } = await existingAdmin(ctx, adminId);
    const current = ctx.auth.sessionId();
    return (await sessionsOf(ctx, { admin })).reverse().map((session) => ({
      ...sessionSummary(session),
      current: session._id === current,
    }));
  },
});

/** Ends one session of an administrator; the caller's current session is allowed. */
export const endOneSession = adminMutation({
  args: { sessionId: z.string() },
  handler: async (ctx, { sessionId }): Promise<null> => {
    const id = ctx.db.normalizeId("_sessions", sessionId);
    const session = id === null ? null : await ctx.db.get(id);
    if (session?.admin === undefined) throw new UserError("session_not_found", "The session does not exist");
    await endSession(ctx, session._id);
    return null;
  },
});

/** Ends the sessions of an administrator except the caller's current one. Returns their number. */
export const endSessions = adminMutation({
  args: { adminId: z.string() },
  handler: async (ctx, { adminId }): Promise<number> => {
    const { _id: admin } = await existingAdmin(ctx, adminId);
    return await endOtherSessions(ctx, admin);
  },
});

/** Ends the caller's sessions except the current one, for administrators of every role. Returns their number. */
export const endOwnSessions = adminMutation({
  args: {},
  handler: (ctx): Promise<number> => endOtherSessions(ctx, callingAdmin(ctx)),
});

/** Changes an administrator's role, which takes effect at once. The last owner stays one (`last_owner`). */
export const setRole = adminMutation({
  args: { adminId: z.string(), role: z.enum(adminRoles) },
  handler: async (ctx, { adminId, role }): Promise<null> => {
    const admin = await existingAdmin(ctx, adminId);
    if (role !== "owner") await keepOwner(ctx, admin);
    await ctx.db.patch(admin._id, { role });
    return null;
  },
});

/** Throws if an administrator is the only owner. */
async function keepOwner(ctx: AuthQueryCtx, admin: AuthDoc<"_admins">): Promise<void> {
  const all = await ctx.db.query("_admins").take(authLimits.adminsShownMax);
  if (!all.some((other) => other._id !== admin._id && roleOf(other) === "owner")) {
    throw new UserError("last_owner", "The last owner cannot get another role or be removed");
  }
}

/** Deletes an administrator and their sessions; the caller is allowed, the last owner is not (`last_owner`). */
export const remove = adminMutation({
  args: { adminId: z.string() },
  handler: async (ctx, { adminId }): Promise<null> => {
    const admin = await existingAdmin(ctx, adminId);
    await keepOwner(ctx, admin);
    await endSessionsOf(ctx, { admin: admin._id });
    await setPasswordHash(ctx, admin._id, null);
    await dropFactors(ctx, { admin: admin._id });
    await dropDevices(ctx, { admin: admin._id });
    await ctx.db.delete(admin._id);
    return null;
  },
});

/** Returns what main needs to check the caller's password before changing it. */
export const ownAdminCredential = internalMutation({
  args: {},
  handler: async (ctx): Promise<{ email: string; hash: string | null }> => {
    const admin = await ctx.db.get(callingAdmin(ctx));
    if (admin === null) throw notSignedIn();
    return { email: admin.email, hash: await passwordHashOf(ctx, admin._id) };
  },
});

/** Sets the caller's password and ends their other sessions; `false` if it was changed in the meantime. */
export const setOwnAdminPassword = internalMutation({
  args: { checkedHash: z.string().nullable(), passwordHash: z.string() },
  handler: async (ctx, { checkedHash, passwordHash }): Promise<boolean> => {
    const admin = callingAdmin(ctx);
    if (await ctx.db.get(admin) === null) throw notSignedIn();
    if (await passwordHashOf(ctx, admin) !== checkedHash) return false;
    await setPasswordHash(ctx, admin, passwordHash);
    await endOtherSessions(ctx, admin);
    return true;
  },
});

async function endOtherSessions(ctx: AuthMutationCtx, admin: Id<"_admins">): Promise<number> {
  const current = ctx.auth.sessionId();
  return await endSessionsOf(ctx, { admin }, {
    except: current === null ? null : ctx.db.normalizeId("_sessions", current),
  });
}

async function summary(ctx: AuthQueryCtx, admin: AuthDoc<"_admins">): Promise<AdministratorSummary> {
  return {
    adminId: admin._id,
    email: admin.email,
    role: roleOf(admin),
    createdAt: admin._creationTime,
    sessions: (await sessionsOf(ctx, { admin: admin._id })).length,
    secondFactor: await needsSecondStep(ctx, admin._id),
    passkeys: (await passkeysOf(ctx, admin._id)).length,
    you: admin._id === ctx.auth.adminId(),
  };
}

export async function existingAdmin(ctx: AuthQueryCtx, adminId: string): Promise<AuthDoc<"_admins">> {
  const id = ctx.db.normalizeId("_admins", adminId);
  const admin = id === null ? null : await ctx.db.get(id);
  if (admin === null) {
    throw new UserError("administrator_not_found", "No administrator has this id");
  }
  return admin;
}

export function callingAdmin(ctx: AuthQueryCtx): Id<"_admins"> {
  const admin = ctx.auth.adminId();
  if (admin === null) throw notSignedIn();
  return admin;
}
