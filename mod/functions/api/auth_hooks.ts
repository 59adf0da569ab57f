/**
 * What an app has to say about accounts: the exports `onUserCreated` and `onSignIn` of `functions/auth.ts`, internal
 * mutations that the service runs in the transaction in which a user is made or signs in. What they throw refuses it.
 */
import { zod } from "./current_zod.ts";
import { id } from "./schema.ts";

/** Names of the exports. */
export const authHooks: ReadonlySet<string> = new Set(["onUserCreated", "onSignIn"]);

/** The export that says what the app keeps of its users (profile.ts). */
export const profileExport = "profile";

/** The module all of them stand in. */
export const authHooksModule = "auth";

/** {@linkcode userEvent}, made with the zod of now. */
export function userEventFields() {
  return {
    user: id("_users"),
    /** How: by an email and a password, a link or code from a mail, a provider, a token of an issuer, or an administrator. */
    by: zod.enum(["password", "mail", "provider", "token", "administrator"]),
    /** What the server's configuration calls the provider. */
    provider: zod.string().nullable(),
    /** Who vouches for the user elsewhere. */
    issuer: zod.string().nullable(),
    /** What a provider or the token of an issuer says of them; empty otherwise. */
    claims: zod.record(zod.string(), zod.unknown()),
  };
}

/**
 * The arguments of both.
 *
 * @example
 * ```ts
 * export const onUserCreated = internalMutation({
 *   args: userEvent,
 *   handler: async (ctx, { user }) => {
 *     await ctx.db.insert("members", { user, role: "guest" });
 *   },
 * });
 * ```
 */
export const userEvent = userEventFields();
