/**
 * Account hooks: the exports `onUserCreated`, `onUserPromoted` and `onSignIn` of `functions/auth.ts`. They are internal mutations
 * that run in the transaction that creates, promotes or signs in the user. If a hook throws, the sign-in fails.
 */
import type { z } from "zod";
import { zod } from "./current_zod.ts";
import { id } from "./schema.ts";
import type { Id } from "./values.ts";

/** Names of the exports. */
export const authHooks: ReadonlySet<string> = new Set(["onUserCreated", "onUserPromoted", "onSignIn"]);

/** The export that defines the profile of users (profile.ts). */
export const profileExport = "profile";

/** The module that contains the exports. */
export const authHooksModule = "auth";

const METHODS = ["password", "mail", "provider", "token", "administrator", "passkey", "anonymous"] as const;

/** The type is written out, because inferred types would put declarations of zod into those of the npm package. */
type AuthEventFields = {
  readonly user: z.ZodCustom<Id<"_users">, Id<"_users">>;
  /** The method: password, mail, provider, external token, an administrator, passkey, or anonymous sign-in. */
  readonly by: z.ZodEnum<{ readonly [Method in typeof METHODS[number]]: Method }>;
  /** Configured name of the provider. */
  readonly provider: z.ZodNullable<z.ZodString>;
  /** Issuer of the external identity. */
  readonly issuer: z.ZodNullable<z.ZodString>;
  /** Claims of the provider or token; empty for other methods. */
  readonly claims: z.ZodRecord<z.ZodString, z.ZodUnknown>;
};

/** {@linkcode authEventArgs}, built with the current zod. */
export function authEventFields(): AuthEventFields {
  return {
    user: id("_users"),
    by: zod.enum(METHODS),
    provider: zod.string().nullable(),
    issuer: zod.string().nullable(),
    claims: zod.record(zod.string(), zod.unknown()),
  };
}

/**
 * The arguments of the hooks. Those of `onUserPromoted` also have `anonymousUser`, an id.
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
export const authEventArgs: AuthEventFields = authEventFields();

/** @deprecated Use {@linkcode authEventArgs}. */
export const userEvent: AuthEventFields = authEventArgs;
