/** Users that sign in with tokens of external issuers. */
import { z } from "zod";
import type { Id } from "../../../functions/api/service.ts";
import { internalMutation, internalQuery } from "../../tables.ts";
import { arrivalSchema, arrive, identityBySubject } from "./identity_rows.ts";

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
  args: { arrival: arrivalSchema },
  handler: async (ctx, { arrival }): Promise<boolean> => (await arrive(ctx, arrival)).ok,
});
