/** Passkeys without HTTP: sign-ins, and the actions with which users and administrators register, prove and remove them. */
import { z } from "zod";
import { ServiceError, UserError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";
import { type MainAction, mainAction } from "../../functions/main_actions.ts";
import type { AccountParts } from "../accounts.ts";
import type { Requester } from "../attempt_limits.ts";
import { authLimits } from "../limits.ts";
import { accountAction, checkPassword } from "../own_account.ts";
import { system } from "../system_calls.ts";
import type { Tokens } from "../tokens/session_tokens.ts";
import { type ChallengeUse, type OpenChallenge, PasskeyChallenges } from "./challenges.ts";
import {
  type Assertion,
  assertionSchema,
  challengeOf,
  type Registration,
  registrationSchema,
  RelyingParty,
  type RelyingPartyOptions,
} from "./relying_party.ts";

const startArgs = z.strictObject({
  /** Absent if the account has no password, or a factor was just proved. */
  password: z.string().optional(),
});
/** A registered passkey. */
export const newPasskeySchema = z.strictObject({
  response: registrationSchema,
  name: z.string().trim().min(1).max(authLimits.passkeyNameCharsMax).default("Passkey"),
});
type NewPasskey = z.output<typeof newPasskeySchema>;
const proveArgs = z.strictObject({ response: assertionSchema });
const removeArgs = z.strictObject({ passkeyId: z.string() });
const noArgs = z.strictObject({});

/** Options for the browser, as the JSON methods of `PublicKeyCredential` take them. */
interface BrowserOptions {
  readonly options: object;
  /** Time to use them, in seconds. */
  readonly expiresIn: number;
}

export class Passkeys {
  readonly #parts: AccountParts;
  readonly #relyingParty: RelyingParty;
  readonly #challenges: PasskeyChallenges;

  constructor(parts: AccountParts, options: Omit<RelyingPartyOptions, "redirects">) {
    this.#parts = parts;
    this.#relyingParty = new RelyingParty({ ...options, redirects: parts.redirects });
    this.#challenges = new PasskeyChallenges(parts);
  }

  actions(): ReadonlyMap<string, MainAction> {
    return new Map([
      ["_auth:startPasskeySignIn", mainAction(noArgs, () => Promise.resolve(this.startSignIn()))],
      ...accountAction("startPasskey", startArgs, (args, identity) => this.start(args, identity)),
      ...accountAction("addPasskey", newPasskeySchema, (args, identity) => this.add(args, identity)),
      ...accountAction("startPasskeyProof", noArgs, (_args, identity) => this.startProof(identity)),
      ...accountAction("provePasskey", proveArgs, (args, identity) => this.prove(args, identity)),
      ...accountAction("removePasskey", removeArgs, (args, identity) => this.remove(args, identity)),
    ]);
  }

  /** Options to sign in. They are the same for everyone. Throws `passkeys_unavailable`. */
  startSignIn(): BrowserOptions {
    return this.#browserOptions(
      this.#relyingParty.requestOptions(this.#challenges.issue({ purpose: "sign in" })),
    );
  }

  /** Signs in with a passkey. Throws `invalid_challenge`, `invalid_passkey`, `unknown_passkey`, `passkey_copied`, `email_not_verified`. */
  async signIn(
    { kind, response }: { readonly kind: "user" | "admin"; readonly response: Assertion },
    requester: Requester,
  ): Promise<Tokens> {
    const { calls, limits, policy, sessions } = this.#parts;
    limits.tryCredential(requester.client);
    const { use, account } = await this.#checked(response, {
      asked: { purpose: "sign in" },
      isAdmin: kind === "admin",
    });
    const prepared = sessions.prepare(requester);
    const result = await calls.mutate(system.signInWithPasskey, {
      kind,
      use,
      session: prepared.row,
      requireVerification: policy.requireVerification,
    });
    if ("refused" in result) throw new ServiceError(result.refused);
    // Failures of unknown clients do not lock out owners who have signed in from this address before.
    if (account !== null) limits.recordClient({ account, client: requester.client });
    return await sessions.complete(result, prepared);
  }

  /**
   * Signs up the anonymous user of the requester's session with a new passkey. Throws like {@linkcode add}, and `passkeys_disabled`,
   * `signups_disabled` or `email_not_verified` if an option has changed since {@linkcode start}.
   */
  async signUp({ response, name }: NewPasskey, requester: Requester): Promise<Tokens> {
    const { calls, limits, sessions } = this.#parts;
    limits.tryCredential(requester.client);
    this.#requirePasskeys();
    const refusal = this.#signUpRefusal;
    if (refusal !== null) throw new ServiceError(refusal);
    const { challenge, open } = this.#opened(response, {
      purpose: "register",
      session: requester.priorSession ?? "",
    });
    const credential = await this.#relyingParty.checkRegistration(response, { challenge, isAdmin: false });
    const prepared = sessions.prepare(requester);
    const result = await calls.mutate(system.signUpWithPasskey, {
      challenge: open,
      credential,
      name,
      session: prepared.row,
    });
    if ("refused" in result) throw new ServiceError(result.refused);
    return await sessions.complete(result, prepared);
  }

  /**
   * Options to register a passkey, and whether it signs up an anonymous user. Throws `invalid_credentials`, `passkeys_disabled` and
   * the errors of `passkeyOwner`.
   */
  async start(
    { password }: z.output<typeof startArgs>,
    identity: Identity,
  ): Promise<BrowserOptions & { readonly signUp: boolean }> {
    const { calls, mail, now } = this.#parts;
    const isAdmin = identity.adminId !== null;
    if (!isAdmin) this.#requirePasskeys();
    const asked = { mail: mail.enabled, signUpRefusal: this.#signUpRefusal, now: now() };
    const { owner, session, email, name, hash, credentials, anonymous } = await calls.mutate(
      system.passkeyOwner,
      asked,
      { identity },
    );
    const kind = isAdmin ? "admin" : "user";
    await checkPassword(this.#parts, { account: `${kind} ${email ?? owner}`, password, hash });
    const options = this.#relyingParty.creationOptions({
      challenge: this.#challenges.issue({ purpose: "register", session }),
      owner,
      // The app's passkeys are offered beside it.
      label: isAdmin ? `${email} (administrator)` : email ?? name ?? owner,
      displayName: name ?? email ?? owner,
      exclude: credentials,
    });
    return { ...this.#browserOptions(options), signUp: anonymous };
  }

  /** Stores a registered passkey. Throws `invalid_challenge`, `invalid_passkey`, `passkey_exists`, `too_many_passkeys`. */
  async add(
    { response, name }: NewPasskey,
    identity: Identity,
  ): Promise<{ readonly passkeyId: string }> {
    const { calls, now } = this.#parts;
    const { challenge, open } = this.#opened(response, {
      purpose: "register",
      session: identity.sessionId ?? "",
    });
    const isAdmin = identity.adminId !== null;
    const credential = await this.#relyingParty.checkRegistration(response, { challenge, isAdmin });
    const added = await calls.mutate(system.addPasskey, { challenge: open, credential, name, now: now() }, {
      identity,
    });
    if ("refused" in added) throw new ServiceError(added.refused);
    return added;
  }

  /** Options to prove a passkey in the caller's session. Throws `no_session`. */
  async startProof(identity: Identity): Promise<BrowserOptions> {
    const { session, credentials } = await this.#parts.calls.mutate(system.passkeysToProve, {}, { identity });
    const challenge = this.#challenges.issue({ purpose: "prove", session });
    return this.#browserOptions(this.#relyingParty.requestOptions(challenge, credentials));
  }

  /** Proves a passkey in the caller's session. Throws `invalid_challenge`, `invalid_passkey`, `unknown_passkey`, `passkey_copied`. */
  async prove({ response }: z.output<typeof proveArgs>, identity: Identity): Promise<null> {
    const { calls, now } = this.#parts;
    const { use } = await this.#checked(response, {
      asked: { purpose: "prove", session: identity.sessionId ?? "" },
      isAdmin: identity.adminId !== null,
    });
    const refused = await calls.mutate(system.provePasskey, { use, now: now() }, { identity });
    if (refused !== null) throw new ServiceError(refused);
    return null;
  }

  /** Removes one of the caller's passkeys. Throws `factor_required` unless a factor was proved recently, `last_way_in`, `passkey_not_found`. */
  async remove({ passkeyId }: z.output<typeof removeArgs>, identity: Identity): Promise<null> {
    const { calls, mail, now, policy } = this.#parts;
    const byMail = mail.enabled && policy.magicLink;
    return await calls.mutate(system.removePasskey, { passkeyId, mail: byMail, now: now() }, { identity });
  }

  /** Throws `passkeys_disabled` unless users may add passkeys. */
  #requirePasskeys(): void {
    if (this.#parts.policy.passkeys) return;
    throw new UserError("passkeys_disabled", "Passkeys cannot be added on this server");
  }

  /** Why an anonymous user cannot sign up with a passkey; `null` if it can. A user without an address has none to verify. */
  get #signUpRefusal(): "signups_disabled" | "email_not_verified" | null {
    const { signups, requireVerification } = this.#parts.policy;
    return !signups ? "signups_disabled" : requireVerification ? "email_not_verified" : null;
  }

  #browserOptions(options: object): BrowserOptions {
    return { options, expiresIn: authLimits.passkeyChallengeMs / 1000 };
  }

  /** Throws `invalid_challenge` unless the answer is to a challenge that was issued for this use. */
  #opened(
    response: Registration | Assertion,
    use: ChallengeUse,
  ): { readonly challenge: string; readonly open: OpenChallenge } {
    const challenge = challengeOf(response);
    const open = challenge === null ? null : this.#challenges.open(challenge, use);
    if (challenge === null || open === null) throw new ServiceError("invalid_challenge");
    return { challenge, open };
  }

  /** Checks an answer up to its counter, which the transaction compares. */
  async #checked(
    response: Assertion,
    { asked, isAdmin }: { readonly asked: ChallengeUse; readonly isAdmin: boolean },
  ) {
    const { challenge, open } = this.#opened(response, asked);
    const found = await this.#parts.calls.mutate(system.findPasskey, { credentialId: response.id });
    if (found === null) throw new ServiceError("unknown_passkey");
    const { passkeyId, owner, account, publicKey, backupEligible } = found;
    const state = await this.#relyingParty.checkAssertion(response, {
      challenge,
      owner,
      isAdmin,
      discovered: asked.purpose === "sign in",
      publicKey,
      backupEligible,
    });
    return { use: { passkeyId, challenge: open, ...state }, account };
  }
}
