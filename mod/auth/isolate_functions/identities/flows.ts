/** Sign-ins at a provider, as rows: begun, finished once, and swept when nobody finished them. */
import { z } from "zod";
import type { Id } from "../../../functions/api/service.ts";
import { othersLimits } from "../../limits.ts";
import { type AuthMutationCtx, internalMutation } from "../../tables.ts";
import { type ArrivalRefusal, arrivalSchema, arrive, eventOf } from "./identity_rows.ts";
import { signIn } from "../hooks/hooks.ts";
import { newSessionSchema, type OpenedSession } from "../session_rows.ts";

/** Stores a sign-in that begins. */
export const beginFlow = internalMutation({
  args: {
    stateHash: z.string(),
    provider: z.string(),
    redirectTo: z.string(),
    callback: z.string(),
    now: z.number(),
  },
  handler: async (ctx, { now, ...flow }): Promise<null> => {
    await dropExpiredFlows(ctx, { now, rows: othersLimits.flowsDroppedMax });
    await ctx.db.insert("_oauth_flows", { ...flow, expiresAt: now + othersLimits.flowMs });
    return null;
  },
});

/** A sign-in that comes back from its provider. */
export interface TakenFlow {
  readonly redirectTo: string;
  readonly callback: string;
  readonly linkFor: Id<"_sessions"> | null;
}

/** Takes a sign-in under way with a provider: each can be taken once. `null` when there is none of this state. */
export const takeFlow = internalMutation({
  args: { stateHash: z.string(), provider: z.string(), now: z.number() },
  handler: async (ctx, { stateHash, provider, now }): Promise<TakenFlow | null> => {
    const flow = await ctx.db.query("_oauth_flows")
      .withIndex("by_state", (q) => q.eq("stateHash", stateHash)).unique();
    if (flow === null || flow.provider !== provider || flow.expiresAt <= now) return null;
    // One that was prepared for a link and not begun has not been at the provider.
    if (flow.callback === "") return null;
    await ctx.db.delete(flow._id);
    return { redirectTo: flow.redirectTo, callback: flow.callback, linkFor: flow.linkFor ?? null };
  },
});

export type ProviderSignIn =
  | { readonly ok: true; readonly session: OpenedSession }
  | { readonly ok: false; readonly error: ArrivalRefusal };

/** Signs in whoever a provider says it is. */
export const signInWithProvider = internalMutation({
  args: { arrival: arrivalSchema, session: newSessionSchema },
  handler: async (ctx, { arrival, session }): Promise<ProviderSignIn> => {
    const arrived = await arrive(ctx, arrival);
    if (!arrived.ok) return arrived;
    return { ok: true, session: await signIn(ctx, eventOf(arrived.user, arrival), session) };
  },
});

/** Deletes sign-ins that nobody finished, and identities nobody confirmed. Returns whether there may be more. */
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
