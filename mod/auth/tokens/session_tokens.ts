/** The tokens returned at sign-in and refresh, and what is stored of them (AE5, RT1). */
import { randomBytes } from "node:crypto";
import { ServiceError } from "../../errors.ts";
import { authLimits } from "../limits.ts";
import type { AccessTokens } from "./access_token.ts";
import type { NewDevice } from "../isolate_functions/device_rows.ts";
import type { NewSession, OpenedSession, SignInResult } from "../isolate_functions/session_rows.ts";
import type { RefreshTokens } from "./refresh_token.ts";
import type { TokenHasher } from "./token_hash.ts";

/** The auth response object. */
export interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Lifetime of the access token in seconds. */
  readonly expiresIn: number;
  readonly userId?: string;
  readonly adminId?: string;
}

/** A new session: the values for its transaction, and the tokens for the client. */
export interface PreparedSession {
  readonly row: NewSession;
  readonly refreshToken: string;
  /** Returned instead if a second factor is needed. */
  readonly challenge: string;
}

/** The `data` of `mfa_required`. */
export interface SignInChallenge {
  readonly challenge: string;
  /** Remaining time in seconds. */
  readonly expiresIn: number;
}

export interface SessionTokensOptions {
  readonly accessTokens: AccessTokens;
  readonly refreshTokens: RefreshTokens;
  readonly hasher: TokenHasher;
  readonly accessTokenMs: number;
  readonly now: () => number;
  /** Called after a sign-in from a new device, with the time. It must not throw. */
  readonly onNewDevice: (device: NewDevice, at: number) => void;
}

/** 96 bits. */
const JTI_CHARS = 16;

/** Creates the tokens of sessions. */
export class SessionTokens {
  readonly #options: SessionTokensOptions;

  constructor(options: SessionTokensOptions) {
    this.#options = options;
  }

  /** Creates a session. `lifetimeMs` is the time until it expires without a refresh. */
  prepare(
    { client, userAgent = null, priorSession = null, lifetimeMs = authLimits.sessionMs }: {
      readonly client?: string;
      readonly userAgent?: string | null;
      readonly priorSession?: string | null;
      readonly lifetimeMs?: number;
    },
  ): PreparedSession {
    const { refreshTokens, hasher, now } = this.#options;
    const { token, family } = refreshTokens.first();
    const challenge = randomBytes(32).toString("base64url");
    const at = now();
    const row = {
      family,
      tokenHash: hasher.hash("refresh", token),
      challengeHash: hasher.hash("challenge", challenge),
      now: at,
      // Rounded to a second, like `exp`, so that no session outlives its last possible token.
      expiresAt: Math.floor((at + lifetimeMs) / 1000) * 1000,
      ...(userAgent !== null && { userAgent: userAgent.slice(0, authLimits.userAgentCharsMax) }),
      ...(priorSession !== null && { priorSession }),
      ...(client !== undefined && { address: client.slice(0, authLimits.addressCharsMax) }),
    };
    return { row, refreshToken: token, challenge };
  }

  /** Returns the response of a sign-in. Throws `mfa_required` with a challenge if the account has a second factor. */
  async complete(
    result: SignInResult,
    { row, refreshToken, challenge }: PreparedSession,
  ): Promise<Tokens> {
    if ("sessionId" in result) {
      const tokens = await this.issue(result, { refreshToken, at: row.now });
      if (result.newDevice !== undefined) this.#options.onNewDevice(result.newDevice, row.now);
      return tokens;
    }
    const expiresIn = Math.floor((result.challengeExpiresAt - row.now) / 1000);
    throw new ServiceError("mfa_required", undefined, {
      data: { challenge, expiresIn } satisfies SignInChallenge,
    });
  }

  /** Returns the response for a session. `at` is when its refresh token was created. */
  async issue(
    session: OpenedSession,
    { refreshToken, at }: { readonly refreshToken: string; readonly at: number },
  ): Promise<Tokens> {
    const iat = Math.floor(at / 1000);
    const exp = Math.min(
      Math.floor((at + this.#options.accessTokenMs) / 1000),
      Math.floor(session.expiresAt / 1000),
    );
    const { sessionId: sid, userId, adminId } = session;
    // Derived from the refresh token, so that repeating a request whose response was lost yields the same token.
    const jti = this.#options.hasher.hash("access", refreshToken).slice(0, JTI_CHARS);
    const sub = userId ?? adminId;
    if (sub === null) throw new TypeError("Cannot issue tokens for a session without an owner");
    const accessToken = await this.#options.accessTokens.sign({
      sub,
      sid,
      ...(adminId !== null && { adm: true }),
      iat,
      exp,
      jti,
    });
    const owner = userId !== null ? { userId } : { adminId: sub };
    return { accessToken, refreshToken, expiresIn: exp - iat, ...owner };
  }
}
