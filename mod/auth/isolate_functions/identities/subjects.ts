/** Who comes by a token of another issuer. */
import { z } from "zod";
import type { Id } from "../../../functions/api/service.ts";
import { internalMutation, internalQuery } from "../../tables.ts";
import { arrivalSchema, arrive, identityBySubject } from "./identity_rows.ts";

/** A subject's user, and the row that says so. */
export interface KnownIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly userId: Id<"_users">;
  readonly identityId: Id<"_identities">;
}

/** The user a subject has now, or `null`. */
export const findSubject = internalQuery({
  args: { issuer: z.string(), subject: z.string() },
  handler: async (ctx, { issuer, subject }): Promise<KnownIdentity | null> => {
    const row = await identityBySubject(ctx, { issuer, subject });
    if (row === null || await ctx.db.get(row.user) === null) return null;
    return { issuer, subject, userId: row.user, identityId: row._id };
  },
});

/** Makes the user of a subject that is seen for the first time. Returns whether it was let in. */
export const admitSubject = internalMutation({
  args: { arrival: arrivalSchema },
  handler: async (ctx, { arrival }): Promise<boolean> => (await arrive(ctx, arrival)).ok,
});
