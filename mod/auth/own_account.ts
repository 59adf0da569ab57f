/** The actions `_auth:changePassword` and `_auth:changeEmail`, which run in main: they hash passwords or send mail. */
import { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import type { Id } from "../functions/api/service.ts";
import type { Identity } from "../functions/identity.ts";
import { adminMainAction, type MainAction, mainAction } from "../functions/main_actions.ts";
import type { AccountParts } from "./accounts.ts";
import { normalizedEmail } from "./email_address.ts";
import { checkedPassword, normalizedPassword } from "./passwords.ts";
import { system } from "./system_calls.ts";

export const changePasswordArgs = z.strictObject({
  /** Absent if the account has no password yet. */
  currentPassword: z.string().optional(),
  newPassword: z.string(),
});

export const changeEmailArgs = z.strictObject({
  email: z.string(),
  /** Absent if the account has no password. */
  password: z.string().optional(),
  redirectTo: z.string().optional(),
});

/** Rate limit key of calls over a socket; wrong passwords are also limited by account. */
const SOCKET_CLIENT = "socket";

export class OwnAccountActions {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Sets a new password and ends the user's other sessions. */
  async changePassword(args: z.infer<typeof changePasswordArgs>, identity: Identity): Promise<null> {
    const { calls, now, passwords } = this.#parts;
    const newPassword = checkedPassword(args.newPassword);
    const { hash } = await checkOwnPassword(this.#parts, args.currentPassword, identity);
    const passwordHash = await passwords.hash(newPassword);
    const set = await calls.mutate(system.setOwnPassword, { checkedHash: hash, passwordHash, now: now() }, {
      identity,
    });
    if (!set) throw new ServiceError("invalid_credentials");
    return null;
  }

  /** Mails a code and a link to the new address, which takes effect when one of them is used. */
  async changeEmail(args: z.infer<typeof changeEmailArgs>, identity: Identity): Promise<null> {
    const { calls, limits, mail, redirects } = this.#parts;
    const redirect = redirects.resolve(args.redirectTo);
    const email = normalizedEmail(args.email);
    if (email === null) throw new ServiceError("invalid_email");
    if (!mail.enabled) throw new UserError("mail_disabled", "This server cannot send mail");
    const { userId } = await checkOwnPassword(this.#parts, args.password, identity);
    limits.tryMail(`user ${userId}`, email);
    const sent = await mail.send({
      kind: "verify",
      template: "change",
      email,
      redirect,
      store: (code) => calls.mutate(system.requestChange, { code, userId }),
    });
    if (!sent) throw new ServiceError("email_in_use");
    return null;
  }
}

/** Creates an action of the own account: for users below `_auth`, for administrators below `_admin/administrators`, where it is audited. */
export function accountAction<Args extends z.ZodType>(
  name: string,
  args: Args,
  handler: (args: z.output<Args>, identity: Identity) => Promise<unknown>,
): [path: string, action: MainAction][] {
  const forUsers = mainAction(args, async (given, identity) => {
    if (identity.adminId !== null) {
      throw new UserError("not_signed_in", "Administrators use the functions of _admin/administrators");
    }
    return await handler(given, identity);
  });
  return [[`_auth:${name}`, forUsers], [`_admin/administrators:${name}`, adminMainAction(args, handler)]];
}

/**
 * Returns the calling user's credential after checking the password. Throws `invalid_credentials`; if the account has no password,
 * `factor_required` or `confirmation_required` unless the session was confirmed recently.
 */
export async function checkOwnPassword(
  parts: AccountParts,
  password: string | undefined,
  identity: Identity,
): Promise<{ readonly userId: Id<"_users">; readonly hash: string | null }> {
  const own = await parts.calls.mutate(system.ownCredential, { now: parts.now() }, { identity });
  await checkPassword(parts, { account: `user ${own.email ?? own.userId}`, password, hash: own.hash });
  return own;
}

/** Checks the password of a signed-in account, if it has one. Throws `invalid_credentials`. */
export async function checkPassword(
  { limits, passwords }: AccountParts,
  { account, password, hash }: {
    /** Key of the rate limit: `user <address>` or `admin <address>`. */
    readonly account: string;
    readonly password: string | undefined;
    readonly hash: string | null;
  },
): Promise<void> {
  if (hash === null) return;
  const given = password === undefined ? null : normalizedPassword(password);
  const confirmed = await limits.attempt(
    { account, client: SOCKET_CLIENT },
    async () => await passwords.verify(given, hash) ? true : null,
  );
  if (confirmed === null) throw new ServiceError("invalid_credentials");
}
