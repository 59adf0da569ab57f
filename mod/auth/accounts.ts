/** Sign-up, sign-in, refresh and sign-out of users, without HTTP (AE5 to AE8). */
import { ServiceError } from "../errors.ts";
import { authLimits } from "./limits.ts";
import type { AttemptLimits, Requester } from "./attempt_limits.ts";
import type { CodeMail } from "./mail/code_mail.ts";
import { normalizedEmail } from "./email_address.ts";
import { checkedPassword, normalizedPassword, type PasswordHasher } from "./passwords.ts";
import type { Redirects } from "./redirects.ts";
import type { RefreshTokens } from "./tokens/refresh_token.ts";
import type { SessionTokens, Tokens } from "./tokens/session_tokens.ts";
import { system, type SystemCalls } from "./system_calls.ts";
import type { TokenHasher } from "./tokens/token_hash.ts";
import type { TotpApps } from "./factors/totp_apps.ts";

/** Account settings chosen by the operator. */
export interface AccountPolicy {
  readonly signups: boolean;
  readonly magicLink: boolean;
  /** Whether users may set up authenticator apps. */
  readonly totp: boolean;
  /** Whether users may register passkeys. */
  readonly passkeys: boolean;
  /** Whether accounts get a mail about a sign-in from a new device. */
  readonly deviceMail: boolean;
  /** Patterns of functions that API keys of users may call; empty if users create none. */
  readonly userKeys: readonly string[];
  /** Whether clients may sign in without an account. */
  readonly anonymous: boolean;
  /** How long anonymous users without a session are kept, in milliseconds. */
  readonly anonymousUserMs: number;
  /** Whether an address must be verified before the first sign-in. */
  readonly requireVerification: boolean;
}

export interface AccountParts {
  readonly policy: AccountPolicy;
  readonly calls: SystemCalls;
  readonly sessions: SessionTokens;
  readonly passwords: PasswordHasher;
  readonly refreshTokens: RefreshTokens;
  readonly hasher: TokenHasher;
  readonly limits: AttemptLimits;
  readonly redirects: Redirects;
  readonly mail: CodeMail;
  readonly totp: TotpApps;
  readonly now: () => number;
}

export interface SignUpRequest {
  readonly email: string;
  readonly password: string;
  readonly name?: string | undefined;
}

export interface PasswordCredential {
  readonly email: string;
  readonly password: string;
}

export class UserAccounts {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Available sign-in methods: those allowed by the operator and, for mail, deliverable. */
  get offered(): Pick<AccountPolicy, "signups" | "magicLink" | "anonymous"> {
    const { policy, mail } = this.#parts;
    const { anonymous, magicLink, signups } = policy;
    return { signups, magicLink: magicLink && mail.enabled, anonymous };
  }

  /** Throws `signups_disabled`, `invalid_email`, `weak_password`, `invalid_password`, `invalid_name`, `email_in_use`. */
  async signUp(
    request: SignUpRequest,
    requester: Requester,
  ): Promise<Tokens | { readonly verificationRequired: true }> {
    const { policy, calls, limits, mail, passwords, redirects, sessions } = this.#parts;
    limits.tryCredential(requester.client);
    if (!policy.signups) throw new ServiceError("signups_disabled");
    const email = normalizedEmail(request.email);
    if (email === null) throw new ServiceError("invalid_email");
    const password = checkedPassword(request.password);
    const name = request.name?.trim() || undefined;
    if ((name?.length ?? 0) > authLimits.nameCharsMax) throw new ServiceError("invalid_name");
    // Check before hashing, which is a thousand times more expensive. The transaction makes the final decision.
    if (await calls.query(system.emailTaken, { email })) throw new ServiceError("email_in_use");
    const prepared = sessions.prepare(requester);
    const signedUp = await calls.mutate(system.signUp, {
      email,
      ...(name !== undefined && { name }),
      passwordHash: await passwords.hash(password),
      session: prepared.row,
      requireVerification: policy.requireVerification,
    });
    if (signedUp === null) throw new ServiceError("email_in_use");
    limits.recordClient({ account: `user ${email}`, client: requester.client });
    if (mail.enabled && limits.mayMail(email)) {
      // If sending fails now, the user can request another mail. The account exists either way.
      mail.start({
        kind: "verify",
        email,
        redirect: redirects.resolve(undefined),
        store: (code) => calls.mutate(system.requestCode, { code, signups: false }),
      });
    }
    if (signedUp.session === null) return { verificationRequired: true };
    return await sessions.complete(signedUp.session, prepared);
  }

  /** Creates a user without an address and signs in. Throws `anonymous_disabled`. */
  async signInAnonymously(requester: Requester): Promise<Tokens> {
    const { policy, calls, limits, sessions } = this.#parts;
    limits.tryAnonymous(requester.client);
    if (!policy.anonymous) throw new ServiceError("anonymous_disabled");
    const prepared = sessions.prepare(requester);
    const session = await calls.mutate(system.signInAnonymously, { session: prepared.row });
    return await sessions.complete(session, prepared);
  }

  /** Throws `invalid_credentials`, with the same timing for an unknown address, `email_not_verified` or `mfa_required`. */
  signIn(credential: PasswordCredential, requester: Requester): Promise<Tokens> {
    return this.#signIn("user", credential, requester);
  }

  /** Signs in an administrator. Throws `invalid_credentials` or `mfa_required`. */
  signInAdmin(credential: PasswordCredential, requester: Requester): Promise<Tokens> {
    return this.#signIn("admin", credential, requester);
  }

  async #signIn(
    kind: "user" | "admin",
    credential: PasswordCredential,
    requester: Requester,
  ): Promise<Tokens> {
    const { limits } = this.#parts;
    limits.tryCredential(requester.client);
    const email = normalizedEmail(credential.email);
    const account = `${kind} ${email ?? ""}`;
    const tokens = await limits.attempt(
      { account, client: requester.client },
      () => this.#checkPassword(kind, { ...credential, email }, requester),
    );
    if (tokens === null) throw new ServiceError("invalid_credentials");
    return tokens;
  }

  async #checkPassword(
    kind: "user" | "admin",
    { email, password }: { readonly email: string | null; readonly password: string },
    requester: Requester,
  ): Promise<Tokens | null> {
    const { calls, passwords, policy, sessions } = this.#parts;
    const { owner, hash, emailVerified } = await calls.mutate(system.findCredential, {
      kind,
      email: email ?? "",
    });
    const normalized = normalizedPassword(password);
    const correct = await passwords.verify(normalized, hash);
    if (!correct || normalized === null || owner === null || hash === null) return null;
    if (kind === "user" && policy.requireVerification && !emailVerified) {
      throw new ServiceError("email_not_verified");
    }
    const prepared = sessions.prepare(requester);
    const session = await calls.mutate(system.signIn, {
      kind,
      owner,
      checkedHash: hash,
      newHash: passwords.needsRehash(hash) ? await passwords.hash(normalized) : null,
      session: prepared.row,
    });
    return session === null ? null : await sessions.complete(session, prepared);
  }

  /** Rotates a refresh token. The same token and `attemptId` within the grace time get the same response. Throws `ServiceError`s. */
  async refresh(
    { refreshToken, attemptId = null }: {
      readonly refreshToken: string;
      readonly attemptId?: string | null | undefined;
    },
    requester: Requester,
  ): Promise<Tokens> {
    const { calls, hasher, limits, now, refreshTokens, sessions } = this.#parts;
    limits.tryRefresh(requester.client);
    const claim = refreshTokens.open(refreshToken);
    if (claim === null) throw new ServiceError("invalid_refresh_token");
    const next = refreshTokens.next(claim).token;
    const answer = await calls.mutate(system.refreshSession, {
      ...claim,
      hash: hasher.hash("refresh", refreshToken),
      nextHash: hasher.hash("refresh", next),
      attempt: attemptId === null ? null : hasher.hash("attempt", attemptId),
      address: requester.client.slice(0, authLimits.addressCharsMax),
      now: now(),
    });
    switch (answer.kind) {
      case "refreshed":
        return await sessions.issue(answer.session, { refreshToken: next, at: answer.at });
      case "invalid":
        throw new ServiceError("invalid_refresh_token");
      case "stale":
        throw new ServiceError("stale_refresh_token");
      case "reused":
        throw new ServiceError("refresh_token_reused");
      case "expired":
        throw new ServiceError("session_expired");
      default:
        return answer satisfies never;
    }
  }

  /** Ends the session of a refresh token, a session id, or both. Ignores anything that is not a session. */
  async signOut(
    { refreshToken = null, sessionId = null }: {
      readonly refreshToken?: string | null;
      readonly sessionId?: string | null;
    },
  ): Promise<void> {
    const { calls, refreshTokens } = this.#parts;
    const family = refreshToken === null ? undefined : refreshTokens.open(refreshToken)?.family;
    if (family === undefined && sessionId === null) return;
    await calls.mutate(system.endSessionBy, {
      ...(family !== undefined && { family }),
      ...(sessionId !== null && { sessionId }),
    });
  }
}
