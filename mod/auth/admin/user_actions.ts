/** Actions on users that run in main: hashing, mail, deletion in several steps. At `_admin/users:<name>`. */
import { z } from "zod";
import { ServiceError, UserError } from "../../errors.ts";
import type { Id } from "../../functions/api/service.ts";
import { adminMainAction, type MainAction } from "../../functions/main_actions.ts";
import { authLimits } from "../limits.ts";
import type { AccountParts } from "../accounts.ts";
import { normalizedEmail } from "../email_address.ts";
import { checkedPassword } from "../passwords.ts";
import { system, type SystemCalls } from "../system_calls.ts";

const createArgs = z.strictObject({
  email: z.string(),
  /** If absent, the user sets one by mail or signs in by mail. */
  password: z.string().optional(),
  name: z.string().trim().max(authLimits.nameCharsMax).optional(),
  emailVerified: z.boolean().default(true),
  profile: z.record(z.string(), z.unknown()).optional(),
});
const passwordArgs = z.strictObject({ userId: z.string(), password: z.string() });
const mailArgs = z.strictObject({ userId: z.string(), redirectTo: z.string().optional() });
const userArgs = z.strictObject({ userId: z.string() });
const passkeyArgs = z.strictObject({ userId: z.string(), passkeyId: z.string() });

export function userActions(parts: AccountParts): ReadonlyMap<string, MainAction> {
  const actions = new UserActions(parts);
  return new Map([
    ["_admin/users:create", adminMainAction(createArgs, (args) => actions.create(args))],
    ["_admin/users:setPassword", adminMainAction(passwordArgs, (args) => actions.setPassword(args))],
    ["_admin/users:sendReset", adminMainAction(mailArgs, (args) => actions.mail("reset", args))],
    ["_admin/users:sendVerification", adminMainAction(mailArgs, (args) => actions.mail("verify", args))],
    ["_admin/users:remove", adminMainAction(userArgs, (args) => actions.remove(args))],
    [
      "_admin/users:removeFactors",
      adminMainAction(
        userArgs,
        ({ userId }, identity) =>
          parts.calls.mutate(system.removeFactorsOfUser, { userId, now: parts.now() }, { identity }),
      ),
    ],
    [
      "_admin/users:removePasskey",
      adminMainAction(
        passkeyArgs,
        (args, identity) =>
          parts.calls.mutate(system.removePasskeyOfUser, { ...args, now: parts.now() }, { identity }),
      ),
    ],
  ]);
}

class UserActions {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Resolves to the id of the new user. */
  async create(
    { email: given, password, name, emailVerified, profile }: z.output<typeof createArgs>,
  ): Promise<{ userId: string }> {
    const { calls, passwords } = this.#parts;
    const email = normalizedEmail(given);
    if (email === null) throw new ServiceError("invalid_email");
    const passwordHash = password === undefined ? null : await passwords.hash(checkedPassword(password));
    const userId = await calls.mutate(system.createUser, {
      email,
      emailVerified,
      passwordHash,
      ...(name !== undefined && name !== "" && { name }),
      ...(profile !== undefined && { profile }),
    });
    if (userId === null) throw new ServiceError("email_in_use");
    return { userId };
  }

  /** Ends the user's sessions. Resolves to their number. */
  async setPassword({ userId, password }: z.output<typeof passwordArgs>): Promise<{ ended: number }> {
    const { calls, passwords } = this.#parts;
    const passwordHash = await passwords.hash(checkedPassword(password));
    const ended = await calls.mutate(system.setUserPassword, { userId, passwordHash });
    if (ended === null) throw noSuchUser();
    return { ended };
  }

  /** Mails the user a code and a link. `sent` is false if the address is already verified. */
  async mail(
    kind: "reset" | "verify",
    { userId, redirectTo }: z.output<typeof mailArgs>,
  ): Promise<{ sent: boolean }> {
    const { calls, limits, mail, redirects } = this.#parts;
    const redirect = redirects.resolve(redirectTo);
    const user = await calls.query(system.addressOf, { userId });
    if (user === null) throw noSuchUser();
    const { email } = user;
    if (email === null) throw new UserError("no_address", "The user has no email address");
    if (!mail.enabled) throw new UserError("mail_disabled", "This server cannot send mail");
    if (!limits.mayMail(email)) throw new ServiceError("rate_limited");
    const store = (code: Parameters<Parameters<typeof mail.send>[0]["store"]>[0]) =>
      calls.mutate(system.requestCode, { code, signups: false });
    return { sent: await mail.send({ kind, email, redirect, store }) };
  }

  /** Deletes a user and their documents. Resolves to the number of the app's documents deleted. */
  async remove({ userId: given }: z.output<typeof userArgs>): Promise<{ deleted: number }> {
    const { calls } = this.#parts;
    if (await calls.query(system.addressOf, { userId: given }) === null) throw noSuchUser();
    return { deleted: await deleteUser(calls, { userId: given as never }) };
  }
}

/** Deletes a user and their documents in bounded steps. Returns the number of the app's documents deleted. */
export async function deleteUser(
  calls: SystemCalls,
  user: { readonly userId: Id<"_users">; readonly anonymousOnly?: boolean },
): Promise<number> {
  let deleted = 0;
  for (;;) {
    const step = await calls.mutate(system.deleteUserStep, user);
    // Another request may have deleted the remaining documents.
    if (step === null) return deleted;
    deleted += step.deleted;
    if (step.done) return deleted;
  }
}

function noSuchUser(): UserError {
  return new UserError("user_not_found", "No user has this id");
}
