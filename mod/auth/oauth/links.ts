/** Links additional identities of a signed-in user, without HTTP: actions below `_auth`. */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Identity } from "../../functions/identity.ts";
import type { AccountParts } from "../accounts.ts";
import { checkOwnPassword } from "../own_account.ts";
import { system } from "../system_calls.ts";
import type { SignIns } from "./sign_ins.ts";

export const startLinkArgs = z.strictObject({
  provider: z.string(),
  redirectTo: z.string().optional(),
  /** Absent if the account has no password, or the user just signed in or proved a factor. */
  password: z.string().optional(),
});
export const linkIdentityArgs = z.strictObject({ token: z.string().max(100) });
export const unlinkIdentityArgs = z.strictObject({ identityId: z.string() });

export class Links {
  readonly #parts: AccountParts;
  readonly #signIns: SignIns;

  constructor(parts: AccountParts, signIns: SignIns) {
    this.#parts = parts;
    this.#signIns = signIns;
  }

  /**
   * Prepares a link. Anyone with the result can start it, but only the requesting session can finish it. Throws
   * `invalid_credentials`, `confirmation_required`, `factor_required`.
   */
  async start(
    { provider, redirectTo, password }: z.infer<typeof startLinkArgs>,
    identity: Identity,
  ): Promise<{ readonly link: string }> {
    const { calls, hasher, limits, now, redirects } = this.#parts;
    this.#signIns.provider(provider);
    const target = redirects.resolve(redirectTo);
    limits.beginFlow(`user ${identity.userId}`);
    if (password !== undefined) await checkOwnPassword(this.#parts, password, identity);
    const link = randomBytes(32).toString("base64url");
    await calls.mutate(system.prepareLink, {
      stateHash: hasher.hash("flow", link),
      provider,
      redirectTo: target,
      passwordChecked: password !== undefined,
      now: now(),
    }, { identity });
    return { link };
  }

  /** Links the identity that the browser of the caller's session returned with. Returns the name of its provider. */
  async finish(
    { token }: z.infer<typeof linkIdentityArgs>,
    identity: Identity,
  ): Promise<{ readonly provider: string }> {
    const { calls, hasher, now } = this.#parts;
    const args = { tokenHash: hasher.hash("brought", token), now: now() };
    return { provider: await calls.mutate(system.linkIdentity, args, { identity }) };
  }

  async unlink({ identityId }: z.infer<typeof unlinkIdentityArgs>, identity: Identity): Promise<null> {
    const { calls, mail, policy } = this.#parts;
    const byMail = mail.enabled && policy.magicLink;
    return await calls.mutate(system.unlinkIdentity, { identityId, mail: byMail }, { identity });
  }
}
