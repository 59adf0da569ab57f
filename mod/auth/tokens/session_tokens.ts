/** The tokens returned at sign-in and refresh, and what is stored of them (AE5, RT1). */
import { authLimits } from "../limits.ts";
import type { AccessTokens } from "./access_token.ts";
import type { NewSession, OpenedSession } from "../isolate_functions/session_rows.ts";
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

/** A new session: the values for its transaction, and the token for the client. */
export interface PreparedSession {
  readonly row: NewSession;
  readonly refreshToken: string;
}

export interface SessionTokensOptions {
  readonly accessTokens: AccessTokens;
  readonly refreshTokens: RefreshTokens;
  readonly hasher: TokenHasher;
  readonly accessTokenMs: number;
  readonly now: () => number;
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
    { client, userAgent = null, lifetimeMs = authLimits.sessionMs }: {
      readonly client?: string;
      readonly userAgent?: string | null;
      readonly lifetimeMs?: number;
    },
  ): PreparedSession {
    const { refreshTokens, hasher, now } = this.#options;
    const { token, family } = refreshTokens.first();
    const at = now();
    const row = {
      family,
      tokenHash: hasher.hash("refresh", token),
      now: at,
      // Rounded to a second, like `exp`, so that no session outlives its last possible token.
      expiresAt: Math.floor((at + lifetimeMs) / 1000) * 1000,
      ...(userAgent !== null && { userAgent: userAgent.slice(0, authLimits.userAgentCharsMax) }),
      ...(client !== undefined && { address: client.slice(0, authLimits.addressCharsMax) }),
    };
    return { row, refreshToken: token };
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
