/** Rows of provider sign-ins: created at the start, consumed once, and deleted if abandoned. */
import { z } from "zod";
import type { Id } from "../../../functions/api/service.ts";
import { externalLimits } from "../../limits.ts";
import { type AuthMutationCtx, internalMutation } from "../../tables.ts";
import { eventOf, resolveReturn, type ReturnRefusal, takeReturned } from "./identity_rows.ts";
import { signIn } from "../factors/challenges.ts";
import { newSessionSchema, type SignInResult } from "../session_rows.ts";

/** Stores a new sign-in. */
export const beginFlow = internalMutation({
  args: {
    stateHash: z.string(),
    provider: z.string(),
    redirectTo: z.string(),
    callback: z.string(),
    appState: z.string().optional(),
    now: z.number(),
  },
  handler: async (ctx, { now, ...flow }): Promise<null> => {
    await dropExpiredFlows(ctx, { now, rows: externalLimits.flowsDroppedMax });
    await ctx.db.insert("_oauth_flows", { ...flow, expiresAt: now + externalLimits.flowMs });
    return null;
  },
});

/** A sign-in returning from its provider. */
export interface ConsumedFlow {
  readonly redirectTo: string;
  readonly callback: string;
  readonly appState: string | undefined;
  readonly linkFor: Id<"_sessions"> | null;
}

/** Consumes a pending sign-in of a provider. Works once; `null` if the state is unknown. */
export const takeFlow = internalMutation({
  args: { stateHash: z.string(), provider: z.string(), now: z.number() },
  handler: async (ctx, { stateHash, provider, now }): Promise<ConsumedFlow | null> => {
    const flow = await ctx.db.query("_oauth_flows")
      .withIndex("by_state", (q) => q.eq("stateHash", stateHash)).unique();
    if (flow === null || flow.provider !== provider || flow.expiresAt <= now) return null;
    // A prepared link that has not begun cannot return from the provider.
    if (flow.callback === "") return null;
    await ctx.db.delete(flow._id);
    const { redirectTo, callback, appState, linkFor = null } = flow;
    return { redirectTo, callback, appState, linkFor };
  },
});

export type ProviderSignIn =
  | { readonly ok: true; readonly session: SignInResult }
  | { readonly ok: false; readonly error: ReturnRefusal };

/** Signs in with a returned identity, which the anonymous user of the prior session signs up with; `null` if there is none. */
export const signInWithProvider = internalMutation({
  args: { tokenHash: z.string(), signups: z.boolean(), session: newSessionSchema },
  handler: async (ctx, { tokenHash, signups, session }): Promise<ProviderSignIn | null> => {
    const returned = await takeReturned(ctx, { tokenHash, now: session.now });
    if (returned?.signUp === undefined) return null;
    const { identity, provider, signUp } = returned;
    const arrival = { identity, provider, ...signUp, signups, takenEmail: "refuse" as const };
    const arrived = await resolveReturn(ctx, arrival, session);
    if (!arrived.ok) return arrived;
    return { ok: true, session: await signIn(ctx, eventOf(arrived.user, arrival), session) };
  },
});

/** Deletes abandoned sign-ins and returned identities. Returns whether more may remain. */
export async function dropExpiredFlows(
  ctx: AuthMutationCtx,
  { now, rows }: { readonly now: number; readonly rows: number },
): Promise<boolean> {
  const flows = await ctx.db.query("_oauth_flows").withIndex("by_expiry", (q) => q.lte("expiresAt", now))
    .take(rows);
  for (const flow of flows) await ctx.db.delete(flow._id);
  const brought = await ctx.db.query("_brought_identities")
    .withIndex("by_expiry", (q) => q.lte("expiresAt", now)).take(rows);
  for (const identity of brought) await ctx.db.delete(identity._id);
  return flows.length === rows || brought.length === rows;
}
