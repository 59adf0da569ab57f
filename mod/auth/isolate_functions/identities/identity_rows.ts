/** Resolves identities to users in a transaction. `mod/auth/oauth/README.md` describes the rules and the attacks. */
import { z } from "zod";
import type { Id } from "../../../functions/api/service.ts";
import { externalLimits } from "../../limits.ts";
import {
  type AuthDoc,
  type AuthMutationCtx,
  type AuthQueryCtx,
  internalMutation,
  internalQuery,
} from "../../tables.ts";
import { admitUser, userAdmitted, type UserEvent } from "../hooks.ts";
import type { NewSession } from "../session_rows.ts";
import { identitiesOf, takeOver, userByEmail } from "../account_rows.ts";

/** An external identity, verified by main. */
export const broughtIdentitySchema = z.object({
  issuer: z.string(),
  subject: z.string(),
  /** Normalized; present only if the issuer has verified it. */
  email: z.string().optional(),
  name: z.string().optional(),
});
export type ProvidedIdentity = z.infer<typeof broughtIdentitySchema>;

export const providerReturnSchema = z.object({
  identity: broughtIdentitySchema,
  provider: z.string().optional(),
  /** Claims of the provider or of the issuer's token. */
  claims: z.record(z.string(), z.unknown()).optional(),
  /** Whether a user may be created. */
  signups: z.boolean(),
  /** Whether to link a user with the same address, if both sides have verified it. */
  linkByEmail: z.boolean(),
  /** If the address belongs to another user: `refuse` the sign-in, or continue `without` the address. */
  takenEmail: z.enum(["refuse", "without"]),
});
type ProviderReturn = z.infer<typeof providerReturnSchema>;

export type ReturnRefusal = "signups_disabled" | "email_in_use";

type ResolvedReturn =
  | { readonly ok: true; readonly user: Id<"_users">; readonly identityId: Id<"_identities"> }
  | { readonly ok: false; readonly error: ReturnRefusal };

/** Finds the user of an identity, links one by address, or creates or promotes one. */
export async function resolveReturn(
  ctx: AuthMutationCtx,
  arrival: ProviderReturn,
  { priorSession }: Pick<NewSession, "priorSession"> = {},
): Promise<ResolvedReturn> {
  const { identity } = arrival;
  const known = await identityBySubject(ctx, identity);
  if (known !== null) {
    if (await ctx.db.get(known.user) !== null) {
      await noteProfile(ctx, { row: known, identity });
      return { ok: true, user: known.user, identityId: known._id };
    }
    // The user was deleted manually.
    await ctx.db.delete(known._id);
  }
  const holder = identity.email === undefined ? null : await userByEmail(ctx, identity.email);
  if (holder !== null && await isSamePerson(ctx, { holder, arrival })) {
    if (!holder.emailVerified) await takeOver(ctx, holder);
    return { ok: true, user: holder._id, identityId: await link(ctx, { user: holder._id, ...arrival }) };
  }
  if (holder !== null && arrival.takenEmail === "refuse") return { ok: false, error: "email_in_use" };
  if (!arrival.signups) return { ok: false, error: "signups_disabled" };
  const email = holder === null ? identity.email : undefined;
  const admitted = await admitUser(ctx, {
    ...(email !== undefined && { email }),
    emailVerified: email !== undefined,
    ...(identity.name !== undefined && { name: identity.name }),
  }, { provider: arrival.provider, issuer: identity.issuer, claims: arrival.claims, priorSession });
  const { user } = admitted;
  const identityId = await link(ctx, { user, ...arrival });
  await userAdmitted(ctx, eventOf(user, arrival), admitted);
  return { ok: true, user, identityId };
}

/** The event passed to the app's hooks. */
export function eventOf(user: Id<"_users">, { identity, provider, claims }: ProviderReturn): UserEvent {
  const by = provider === undefined ? "token" : "provider";
  return { user, by, provider, issuer: identity.issuer, claims };
}

/** Stores an identity of a user. */
export async function link(
  ctx: AuthMutationCtx,
  { user, identity, provider }: {
    readonly user: Id<"_users">;
    readonly identity: ProvidedIdentity;
    readonly provider?: string | undefined;
  },
): Promise<Id<"_identities">> {
  return await ctx.db.insert("_identities", {
    ...identity,
    user,
    ...(provider !== undefined && { provider }),
  });
}

export function identityBySubject(
  ctx: AuthQueryCtx,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
): Promise<AuthDoc<"_identities"> | null> {
  return ctx.db.query("_identities")
    .withIndex("by_subject", (q) => q.eq("issuer", issuer).eq("subject", subject)).unique();
}

/** A returned identity, until the client links it or signs in with it. */
export type ReturnedIdentity =
  & Pick<AuthDoc<"_brought_identities">, "provider" | "session" | "signUp">
  & { readonly identity: ProvidedIdentity };

/** Takes the returned identity of a token. Works once; `null` if the token is unknown or has expired. */
export async function takeReturned(
  ctx: AuthMutationCtx,
  { tokenHash, now }: { readonly tokenHash: string; readonly now: number },
): Promise<ReturnedIdentity | null> {
  const row = await ctx.db.query("_brought_identities")
    .withIndex("by_token", (q) => q.eq("tokenHash", tokenHash)).unique();
  if (row === null || row.expiresAt <= now) return null;
  await ctx.db.delete(row._id);
  const { provider, session, signUp } = row;
  return { provider, session, signUp, identity: broughtIdentitySchema.parse(row) };
}

/** Whether the user of the address is the same person. Not with another identity of that issuer: the owner changed. */
async function isSamePerson(
  ctx: AuthQueryCtx,
  { holder, arrival }: { readonly holder: AuthDoc<"_users">; readonly arrival: ProviderReturn },
): Promise<boolean> {
  if (!arrival.linkByEmail) return false;
  if (!holder.emailVerified) return true;
  const linked = await identitiesOf(ctx, holder._id);
  return linked.length < externalLimits.identitiesPerUserMax &&
    !linked.some(({ issuer }) => issuer === arrival.identity.issuer);
}

/** Updates the displayed details of the identity. The user is not changed. */
async function noteProfile(
  ctx: AuthMutationCtx,
  { row, identity: { email, name } }: {
    readonly row: AuthDoc<"_identities">;
    readonly identity: ProvidedIdentity;
  },
): Promise<void> {
  const changedEmail = email !== undefined && email !== row.email;
  const changedName = name !== undefined && name !== row.name;
  if (!changedEmail && !changedName) return;
  await ctx.db.patch(row._id, { ...(changedEmail && { email }), ...(changedName && { name }) });
}

/** The user of a subject, and the identity row. */
export interface KnownIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly userId: Id<"_users">;
  readonly identityId: Id<"_identities">;
}

/** Returns the user of a subject, or `null`. */
export const findSubject = internalQuery({
  args: { issuer: z.string(), subject: z.string() },
  handler: async (ctx, { issuer, subject }): Promise<KnownIdentity | null> => {
    const row = await identityBySubject(ctx, { issuer, subject });
    if (row === null || await ctx.db.get(row.user) === null) return null;
    return { issuer, subject, userId: row.user, identityId: row._id };
  },
});

/** Creates the user of a new subject. Returns whether it was admitted. */
export const admitSubject = internalMutation({
  args: { arrival: providerReturnSchema },
  handler: async (ctx, { arrival }): Promise<boolean> => (await resolveReturn(ctx, arrival)).ok,
});
