/** Account operations by mail: address verification, password reset and magic links (AE9 to AE12). */
import { ServiceError } from "../../errors.ts";
import type { AccountParts } from "../accounts.ts";
import { codeHash, type CodeKind, linkTokenHash } from "../tokens/codes.ts";
import { normalizedEmail } from "../email_address.ts";
import type { NewCode, Proof } from "../isolate_functions/code_rows.ts";
import type { SignInResult } from "../isolate_functions/session_rows.ts";
import { checkedPassword } from "../passwords.ts";
import type { Requester } from "../attempt_limits.ts";
import type { PreparedSession, Tokens } from "../tokens/session_tokens.ts";
import { system } from "../system_calls.ts";

export interface MailRequest {
  readonly email: string;
  readonly redirectTo?: string | undefined;
  /** State by which the client recognizes the link; see `APP_STATE`. */
  readonly appState?: string | undefined;
}

/** The proof from a mail: the link's token, or the address with its code. */
export type ProofInput = { readonly token: string } | { readonly email: string; readonly code: string };

export class MailAccounts {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Mails an unverified user a code and a link. Does not reveal whether the user exists. Throws `invalid_redirect`. */
  requestVerification(request: MailRequest, requester: Requester): void {
    this.#request("verify", request, requester);
  }

  /** Mails a user a code and a link to reset the password. Does not reveal whether the user exists. */
  requestReset(request: MailRequest, requester: Requester): void {
    this.#request("reset", request, requester);
  }

  /** Mails a code and a magic link. Does not reveal whether the user exists. Throws `magic_link_disabled`. */
  requestMagic(request: MailRequest, requester: Requester): void {
    if (!this.#parts.policy.magicLink) throw new ServiceError("magic_link_disabled");
    this.#request("magic", request, requester);
  }

  /** Verifies an address. Throws `invalid_code`. */
  async confirmVerification(given: ProofInput, requester: Requester): Promise<void> {
    const { calls, now } = this.#parts;
    await this.#prove("verify", { given, requester }, async (proof) => {
      return await calls.mutate(system.confirmEmail, { proof, now: now() }) ? true : null;
    });
  }

  /** Sets a new password, ends all other sessions and signs in. Throws `invalid_code`, `weak_password`, `invalid_password`. */
  async confirmReset(
    { given, password }: { readonly given: ProofInput; readonly password: string },
    requester: Requester,
  ): Promise<Tokens> {
    const { calls, passwords, sessions } = this.#parts;
    const checked = checkedPassword(password);
    return await this.#prove("reset", { given, requester }, async (proof) => {
      const passwordHash = await passwords.hash(checked);
      const prepared = sessions.prepare(requester);
      const session = await calls.mutate(system.resetPassword, {
        proof,
        passwordHash,
        session: prepared.row,
      });
      return this.#tokens(session, prepared);
    });
  }

  /** Signs in by mail and creates the user if necessary. Throws `invalid_code`. */
  async verifyMagic(given: ProofInput, requester: Requester): Promise<Tokens> {
    const { calls, policy, sessions } = this.#parts;
    if (!policy.magicLink) throw new ServiceError("magic_link_disabled");
    return await this.#prove("magic", { given, requester }, async (proof) => {
      const prepared = sessions.prepare(requester);
      const args = { proof, signups: policy.signups, session: prepared.row };
      return this.#tokens(await calls.mutate(system.signInByMail, args), prepared);
    });
  }

  #request(kind: CodeKind, { email: given, redirectTo, appState }: MailRequest, { client }: Requester): void {
    const { calls, limits, mail, policy, redirects } = this.#parts;
    const redirect = redirects.resolve(redirectTo);
    const email = normalizedEmail(given);
    limits.tryMail(client, email ?? "none");
    // An invalid address gets the same response as an unknown one.
    if (email === null) return;
    const store = (code: NewCode) => calls.mutate(system.requestCode, { code, signups: policy.signups });
    if (!mail.start({ kind, email, redirect, appState, store })) throw new ServiceError("overloaded");
  }

  async #prove<Result>(
    kind: CodeKind,
    { given, requester }: { readonly given: ProofInput; readonly requester: Requester },
    use: (proof: Proof) => Promise<Result | null>,
  ): Promise<Result> {
    const { hasher, limits } = this.#parts;
    limits.tryCredential(requester.client);
    const run = () => use(proof);
    let proof: Proof;
    let result: Result | null;
    if ("token" in given) {
      proof = { tokenHash: linkTokenHash(hasher, { kind, token: given.token }) };
      result = await run();
    } else {
      const email = normalizedEmail(given.email) ?? "";
      proof = { email, codeHash: codeHash(hasher, { kind, email, code: given.code }) };
      result = await limits.attempt({ account: `${kind} ${email}`, client: requester.client }, run);
    }
    if (result === null) throw new ServiceError("invalid_code");
    return result;
  }

  async #tokens(result: SignInResult | null, prepared: PreparedSession): Promise<Tokens | null> {
    return result === null ? null : await this.#parts.sessions.complete(result, prepared);
  }
}
