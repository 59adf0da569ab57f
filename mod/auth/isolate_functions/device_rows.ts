/** Remembers the devices that an account signed in from, within the transaction that opens a session. */
import { authLimits } from "../limits.ts";
import { type AuthDoc, type AuthMutationCtx, idOf, type Owner } from "../tables.ts";
import { deviceName, deviceOf } from "../user_agent.ts";

/** A sign-in from a device that is new to the account, for the mail about it. */
export interface NewDevice {
  /** Verified address of the account. */
  readonly email: string;
  readonly device: string;
}

/**
 * Records the device of a new session. Returns it if it is new to an account that has signed in from others before and has a
 * verified address. `sessions` are the account's others: their devices are known, too.
 */
export async function recordDevice(
  ctx: AuthMutationCtx,
  account: Owner,
  { userAgent = null, now, sessions }: {
    readonly userAgent?: string | null | undefined;
    readonly now: number;
    readonly sessions: readonly AuthDoc<"_sessions">[];
  },
): Promise<NewDevice | null> {
  const owner = idOf(account);
  const name = deviceName(deviceOf(userAgent));
  const devices = await devicesOf(ctx, owner);
  const known = devices.find((device) => device.name === name);
  if (known !== undefined) {
    await ctx.db.patch(known._id, { lastUsedAt: now });
    return null;
  }
  const surplus = devices.length + 1 - authLimits.devicesPerOwnerMax;
  const oldest = devices.toSorted((one, other) => one.lastUsedAt - other.lastUsedAt);
  for (const { _id } of oldest.slice(0, Math.max(0, surplus))) await ctx.db.delete(_id);
  await ctx.db.insert("_devices", { owner, name, lastUsedAt: now });
  // Sessions of administrators who act as the user are not the user's devices.
  const own = sessions.filter(({ impersonatedBy }) => impersonatedBy === undefined);
  const isFirst = devices.length === 0 && own.length === 0;
  if (isFirst || own.some((session) => deviceName(deviceOf(session.userAgent ?? null)) === name)) return null;
  const email = await verifiedAddressOf(ctx, account);
  return email === null ? null : { email, device: name };
}

/** Forgets the devices of an account. */
export async function dropDevices(ctx: AuthMutationCtx, account: Owner): Promise<void> {
  for (const { _id } of await devicesOf(ctx, idOf(account))) await ctx.db.delete(_id);
}

function devicesOf(ctx: AuthMutationCtx, owner: string): Promise<AuthDoc<"_devices">[]> {
  return ctx.db.query("_devices").withIndex("by_owner", (q) => q.eq("owner", owner)).collect();
}

async function verifiedAddressOf(ctx: AuthMutationCtx, account: Owner): Promise<string | null> {
  if ("admin" in account) return (await ctx.db.get(account.admin))?.email ?? null;
  const user = await ctx.db.get(account.user);
  return user?.emailVerified ? user.email ?? null : null;
}
