/** Access tokens: JWTs signed with the server's own key (AT). */
import { Buffer } from "node:buffer";
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { authLimits } from "../limits.ts";

/** What an access token says. Times are in seconds since the epoch. */
export interface AccessClaims {
  /** User id, or admin id when `adm` is true. */
  readonly sub: string;
  /** Session id. */
  readonly sid: string;
  readonly adm?: true;
  readonly iat: number;
  readonly exp: number;
  /** Tells tokens of one session and second apart; tokens of earlier versions of the server have none. */
  readonly jti?: string;
}

/** Why an access token is refused: the contract's AuthError texts. */
export type AccessTokenError =
  | "malformed access token"
  | "invalid access token signature"
  | "access token expired";

export type AccessTokenCheck =
  | { readonly ok: true; readonly claims: AccessClaims }
  | { readonly ok: false; readonly error: AccessTokenError };

const ISSUER = "svc";
const TYPE = "access";
const HEADER = encodeJson({ alg: "HS256", typ: "JWT" });
const BASE64URL = /^[A-Za-z0-9_-]+$/;

const headerSchema = z.object({ alg: z.string(), typ: z.literal("JWT").optional() });
const algorithmSchema = z.object({ alg: z.string() });
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
  readonly #key: KeyObject;

  /** `key`: 32 bytes, `SecretKeys.accessTokens`. */
  constructor(key: Uint8Array) {
    this.#key = createSecretKey(key);
  }

  sign(claims: AccessClaims): string {
    const { sub, sid, adm, iat, exp, jti } = claims;
    const payload = encodeJson({ iss: ISSUER, typ: TYPE, sub, sid, ...(adm && { adm }), iat, exp, jti });
    return `${HEADER}.${payload}.${this.#signature(`${HEADER}.${payload}`)}`;
  }

  /**
   * Checks header, signature, issuer, type and expiry; whether the session still exists is for the caller to find out.
   * `now`: milliseconds since the epoch.
   */
  verify(token: string, now: number): AccessTokenCheck {
    const checked = this.open(token);
    if (checked.ok && now >= checked.claims.exp * 1000) return refused("access token expired");
    return checked;
  }

  /** The claims of a token that was signed here, whether it has expired or not. */
  open(token: string): AccessTokenCheck {
    const parts = tokenParts(token);
    const header = parts && headerSchema.safeParse(decodeJson(parts.header));
    if (!parts || !header?.success || header.data.alg !== "HS256") return refused("malformed access token");
    // Compared as text: the last character has two bits to spare, and one token has one spelling.
    const expected = Buffer.from(this.#signature(`${parts.header}.${parts.payload}`));
    const given = Buffer.from(parts.signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      return refused("invalid access token signature");
    }
    const claims = claimsSchema.safeParse(decodeJson(parts.payload));
    if (!claims.success) return refused("malformed access token");
    const { sub, sid, adm, iat, exp, jti } = claims.data;
    return {
      ok: true,
      claims: { sub, sid, ...(adm === true && { adm }), iat, exp, ...(jti !== undefined && { jti }) },
    };
  }

  #signature(text: string): string {
    return createHmac("sha256", this.#key).update(text).digest("base64url");
  }
}

/**
 * The algorithm a token's header names, or `null` for what is not a JWT at all. Tokens of `HS256` are the server's own,
 * whatever else they say; all others belong to external issuers.
 */
export function tokenAlgorithm(token: string): string | null {
  const parts = tokenParts(token);
  const header = parts && algorithmSchema.safeParse(decodeJson(parts.header));
  return header?.success ? header.data.alg : null;
}

function tokenParts(token: string): { header: string; payload: string; signature: string } | null {
  if (token.length > authLimits.accessTokenCharsMax) return null;
  const [header, payload, signature, ...more] = token.split(".");
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0) {
    return null;
  }
  if (![header, payload, signature].every((part) => BASE64URL.test(part))) return null;
  return { header, payload, signature };
}

function refused(error: AccessTokenError): AccessTokenCheck {
  return { ok: false, error };
}

function encodeJson(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function decodeJson(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, "base64url").toString());
  } catch {
    return undefined;
  }
}
