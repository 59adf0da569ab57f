/**
 * Account hooks: the exports `onUserCreated` and `onSignIn` of `functions/auth.ts`. They are internal mutations that run in
 * the transaction that creates or signs in the user. If a hook throws, the sign-in fails.
 */
import { zod } from "./current_zod.ts";
import { id } from "./schema.ts";

/** Names of the exports. */
export const authHooks: ReadonlySet<string> = new Set(["onUserCreated", "onSignIn"]);

/** The export that defines the profile of users (profile.ts). */
export const profileExport = "profile";

/** The module that contains the exports. */
export const authHooksModule = "auth";

/** {@linkcode authEventArgs}, built with the current zod. */
export function authEventFields() {
  return {
    user: id("_users"),
    /** The method: password, mail, provider, external token, an administrator, or passkey. */
    by: zod.enum(["password", "mail", "provider", "token", "administrator", "passkey"]),
    /** Configured name of the provider. */
    provider: zod.string().nullable(),
    /** Issuer of the external identity. */
    issuer: zod.string().nullable(),
    /** Claims of the provider or token; empty for other methods. */
    claims: zod.record(zod.string(), zod.unknown()),
  };
}

/**
 * The arguments of both hooks.
 *
 * @example
 * ```ts
 * export const onUserCreated = internalMutation({
 *   args: authEventArgs,
 *   handler: async (ctx, { user }) => {
 *     await ctx.db.insert("members", { user, role: "guest" });
 *   },
 * });
 * ```
 */
export const authEventArgs = authEventFields();

/** @deprecated Use {@linkcode authEventArgs}. */
export const userEvent: typeof authEventArgs = authEventArgs;
