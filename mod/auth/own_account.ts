/**
 * What a signed-in user changes about their account and only main can do, because a password is hashed or a mail is
 * sent: actions of the service at `_auth:changePassword` and `_auth:changeEmail`.
 */
import { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import type { Identity } from "../functions/identity.ts";
import type { AccountParts } from "./accounts.ts";
import { normalizedEmail } from "./email_address.ts";
import { checkedPassword, normalizedPassword } from "./passwords/password_rules.ts";
import { system } from "./system_calls.ts";

export const changePasswordArgs = z.strictObject({
  /** Left out by an account that has no password yet. */
  currentPassword: z.string().optional(),
  newPassword: z.string(),
});

export const changeEmailArgs = z.strictObject({
  email: z.string(),
  /** Left out by an account that has no password. */
  password: z.string().optional(),
  redirectTo: z.string().optional(),
});

/** Client key of calls that come over a socket: the limit of wrong passwords is the account's. */
const SOCKET_CLIENT = "socket";

export class OwnAccountActions {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Sets a new password and ends the user's other sessions. */
  async changePassword(args: z.infer<typeof changePasswordArgs>, identity: Identity): Promise<null> {
    const { calls, passwords } = this.#parts;
    const newPassword = checkedPassword(args.newPassword);
    const { hash } = await this.#confirmed(args.currentPassword, identity);
    const passwordHash = await passwords.hash(newPassword);
    const set = await calls.mutate(system.setOwnPassword, { checkedHash: hash, passwordHash }, { identity });
    if (!set) throw new ServiceError("invalid_credentials");
    return null;
  }

  /** Mails a code and a link to the new address; it becomes the user's when they are used. */
  async changeEmail(args: z.infer<typeof changeEmailArgs>, identity: Identity): Promise<null> {
    const { calls, limits, mail, redirects } = this.#parts;
    const redirect = redirects.resolve(args.redirectTo);
    const email = normalizedEmail(args.email);
    if (email === null) throw new ServiceError("invalid_email");
    if (!mail.enabled) throw new UserError("mail_disabled", "This server cannot send mail");
    const { userId } = await this.#confirmed(args.password, identity);
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

  /** The caller's stored credential, once they have shown the password if they have one. */
  async #confirmed(password: string | undefined, identity: Identity) {
    const { calls, limits, passwords } = this.#parts;
    const own = await calls.mutate(system.ownCredential, {}, { identity });
    if (own.hash === null) return own;
    const given = password === undefined ? null : normalizedPassword(password);
    const confirmed = await limits.attempt(
      { account: `user ${own.email ?? own.userId}`, client: SOCKET_CLIENT },
      async () => await passwords.verify(given, own.hash) ? own : null,
    );
    if (confirmed === null) throw new ServiceError("invalid_credentials");
    return confirmed;
  }
}
