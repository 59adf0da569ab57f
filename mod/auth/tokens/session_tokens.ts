/** What a client gets when it signs in or refreshes, and what is stored of it (AE5, RT1). */
import { authLimits } from "../limits.ts";
import type { AccessTokens } from "./access_token.ts";
import type { NewSession, OpenedSession } from "../isolate_functions/session_rows.ts";
import type { RefreshTokens } from "./refresh_token.ts";
import type { TokenHasher } from "./token_hash.ts";

/** The auth response object. */
export interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Lifetime of the access token, seconds. */
  readonly expiresIn: number;
  readonly userId?: string;
  readonly adminId?: string;
}

/** A session about to be opened: what goes to its transaction, and the token that goes to the client. */
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

/** Makes the tokens of sessions. */
export class SessionTokens {
  readonly #options: SessionTokensOptions;

  constructor(options: SessionTokensOptions) {
    this.#options = options;
  }

  /** A new session. `lifetimeMs`: until it expires unless it is refreshed. */
  prepare(
    { client, userAgent = null, lifetimeMs = authLimits.sessionMs }: {
      /** Address of the client. */
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
      // A whole second, as `exp` is: no session outlives the last token that can be made for it.
      expiresAt: Math.floor((at + lifetimeMs) / 1000) * 1000,
      ...(userAgent !== null && { userAgent: userAgent.slice(0, authLimits.userAgentCharsMax) }),
      ...(client !== undefined && { address: client.slice(0, authLimits.addressCharsMax) }),
    };
    return { row, refreshToken: token };
  }

  /** The response for a session. `at`: when its refresh token was made. */
  issue(
    session: OpenedSession,
    { refreshToken, at }: { readonly refreshToken: string; readonly at: number },
  ): Tokens {
    const iat = Math.floor(at / 1000);
    const exp = Math.min(
      Math.floor((at + this.#options.accessTokenMs) / 1000),
      Math.floor(session.expiresAt / 1000),
    );
    const { sessionId: sid, userId, adminId } = session;
    // Made from the refresh token, which is never the same twice: who asks again for a lost answer gets the same one.
    const jti = this.#options.hasher.hash("access", refreshToken).slice(0, JTI_CHARS);
    const sub = userId ?? adminId;
    if (sub === null) throw new TypeError("Cannot issue tokens for a session without an owner");
    const accessToken = this.#options.accessTokens.sign({
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
