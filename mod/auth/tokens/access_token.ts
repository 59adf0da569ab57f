/** Access tokens: JWTs signed with the server's own key (AT). */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { authLimits } from "../limits.ts";

/** Claims of an access token. Times are in seconds since the epoch. */
export interface AccessClaims {
  /** User id, or admin id when `adm` is true. */
  readonly sub: string;
  /** Session id. */
  readonly sid: string;
  readonly adm?: true;
  readonly iat: number;
  readonly exp: number;
  /** Makes tokens of one session and second unique; absent in tokens of earlier versions. */
  readonly jti?: string;
}

/** Reasons to refuse an access token: the contract's `AuthError` texts. */
export type AccessTokenError =
  | "malformed access token"
  | "invalid access token signature"
  | "access token expired";

export type AccessTokenCheck =
  | { readonly ok: true; readonly claims: AccessClaims }
  | { readonly ok: false; readonly error: AccessTokenError };

const ALGORITHM = "HS256";
const ISSUER = "svc";
const TYPE = "access";
/** Stricter than `jose`, which accepts padding. */
const PARTS = /^[\w-]+\.[\w-]+\.[\w-]+$/;

const claimsSchema = z.object({
  iss: z.literal(ISSUER),
  typ: z.literal(TYPE),
  sub: z.string(),
  sid: z.string(),
  adm: z.boolean().optional(),
  iat: z.number(),
  exp: z.number(),
  jti: z.string().optional(),
});

/** Signs and verifies access tokens with one key. */
export class AccessTokens {
  readonly #secret: Uint8Array<ArrayBuffer>;
  #key: Promise<CryptoKey> | undefined;
  /** Claims of genuine tokens, expired or not. Clients send the same token with each call. */
  readonly #genuine = new LRUCache<string, AccessClaims>({ max: authLimits.cachedTokensMax });

  /** `secret`: 32 bytes, `SecretKeys.accessTokens`. */
  constructor(secret: Uint8Array<ArrayBuffer>) {
    this.#secret = secret;
  }

  async sign({ adm, ...claims }: AccessClaims): Promise<string> {
    const { SignJWT } = await import("jose");
    return await new SignJWT({ iss: ISSUER, typ: TYPE, ...claims, ...(adm && { adm }) })
      .setProtectedHeader({ alg: ALGORITHM, typ: "JWT" })
      .sign(await this.#signingKey());
  }

  /** Verifies a token, not its session. `null` for the algorithm of an external issuer. `now`: ms since the epoch. */
  async verify(token: string, now: number): Promise<AccessTokenCheck | null> {
    const checked = await this.open(token);
    if (checked?.ok && now >= checked.claims.exp * 1000) return refused("access token expired");
    return checked;
  }

  /** Returns the claims of a token signed by this server, expired or not; `null` for a JWT of another algorithm. */
  async open(token: string): Promise<AccessTokenCheck | null> {
    const known = this.#genuine.get(token);
    if (known !== undefined) return { ok: true, claims: known };
    if (token.length > authLimits.accessTokenCharsMax || !PARTS.test(token)) {
      return refused("malformed access token");
    }
    const { compactVerify, decodeProtectedHeader, errors } = await import("jose");
    try {
      const { alg, typ = "JWT" } = decodeProtectedHeader(token);
      if (typeof alg === "string" && alg !== ALGORITHM) return null;
      if (typ !== "JWT") return refused("malformed access token");
      const { payload } = await compactVerify(token, await this.#signingKey(), { algorithms: [ALGORITHM] });
      const { iss: _iss, typ: _typ, adm, jti, ...required } = claimsSchema.parse(
        JSON.parse(new TextDecoder().decode(payload)),
      );
      const claims = { ...required, ...(adm === true && { adm }), ...(jti !== undefined && { jti }) };
      this.#genuine.set(token, claims);
      return { ok: true, claims };
    } catch (error) {
      if (error instanceof errors.JWSSignatureVerificationFailed) {
        return refused("invalid access token signature");
      }
      return refused("malformed access token");
    }
  }

  #signingKey(): Promise<CryptoKey> {
    return this.#key ??= crypto.subtle.importKey(
      "raw",
      this.#secret,
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign", "verify"],
    );
  }
}

function refused(error: AccessTokenError): AccessTokenCheck {
  return { ok: false, error };
}
