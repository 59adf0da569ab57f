/** Profile fields of users, and the hook of sign-ins. */
import { authEventArgs, defineProfile } from "syncline/server";
import { z } from "zod";
import { internalMutation } from "./schema.ts";

const picture = z.url({ protocol: /^https$/ });

/** The field `profile` of `_users`. Providers supply the picture; administrators set the number of lists. */
export const profile = defineProfile({
  picture: picture.optional(),
  listsMax: z.int().min(0).max(1_000).default(100),
}, { fill: ({ claims }) => ({ picture: pictureOf(claims) }) });

/** A new picture at the provider is a new picture here. */
export const onSignIn = internalMutation({
  args: authEventArgs,
  handler: async (ctx, { user, claims }) => {
    const found = await ctx.db.get(user);
    const { data: newest } = picture.safeParse(pictureOf(claims));
    if (newest === undefined || newest === found?.profile?.picture) return;
    await ctx.db.patch(user, { profile: { ...found?.profile, picture: newest } });
  },
});

/** Where the picture is, as OpenID providers and GitHub say it. */
function pictureOf(claims: Readonly<Record<string, unknown>>): unknown {
  return claims["picture"] ?? claims["avatar_url"];
}
