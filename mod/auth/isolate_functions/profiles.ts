/** What an app keeps of its users, as administrators change it. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import type { Id, SystemMutationCtx } from "../../functions/api/service.ts";
import type { AuthModel, AuthMutationCtx } from "../tables.ts";

/** Fields of a profile; `null` takes one away. Which there are is for the app to say. */
export const profileSchema = z.record(z.string(), z.unknown());

/** Changes the named fields of a user's profile. Throws `invalid_profile` with what does not fit. */
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
    : [{ path: ["profile"], message: "The app keeps no profile of its users" }];
  if (issues.length > 0) {
    const [first] = issues;
    const message = `${first?.path.join(".")}: ${first?.message}`;
    throw new UserError("invalid_profile", message, { issues: [...issues] });
  }
  await ctx.db.patch(user, { profile });
}
