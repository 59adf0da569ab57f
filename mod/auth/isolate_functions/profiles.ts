/** The app's profile of a user, changed by administrators. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import type { Id, SystemMutationCtx } from "../../functions/api/service.ts";
import type { AuthModel, AuthMutationCtx } from "../tables.ts";

/** Profile fields; `null` removes one. The app defines which exist. */
export const profileSchema = z.record(z.string(), z.unknown());

/** Changes fields of a user's profile. Throws `invalid_profile` with the validation issues. */
export async function setProfile(
  ctx: AuthMutationCtx,
  user: Id<"_users">,
  changes: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { inspector } = ctx as unknown as SystemMutationCtx<AuthModel>;
  const stored = await ctx.db.get(user);
  if (stored === null) return;
  const { _id, _creationTime, ...fields } = stored;
  const profile = Object.fromEntries(
    Object.entries({ ...stored.profile, ...changes }).filter(([, value]) => value !== null),
  );
  const known = inspector.newProfile({ provider: null, issuer: null, claims: {} }) !== undefined;
  const issues = known
    ? inspector.issues("_users", { ...fields, profile })
    : [{ path: ["profile"], message: "The app defines no user profile" }];
  if (issues.length > 0) {
    const [first] = issues;
    const message = `${first?.path.join(".")}: ${first?.message}`;
    throw new UserError("invalid_profile", message, { issues: [...issues] });
  }
  await ctx.db.patch(user, { profile });
}
