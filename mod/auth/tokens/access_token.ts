/** Access tokens: JWTs signed with the server's own key (AT). */
import { Buffer } from "node:buffer";
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
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
   * Verifies header, signature, issuer, type and expiry. The caller checks that the session exists.
   * `now`: milliseconds since the epoch.
   */
  verify(token: string, now: number): AccessTokenCheck {
    const checked = this.open(token);
    if (checked.ok && now >= checked.claims.exp * 1000) return refused("access token expired");
    return checked;
  }

  /** Returns the claims of a token signed by this server, expired or not. */
  open(token: string): AccessTokenCheck {
    const parts = tokenParts(token);
    const header = parts && headerSchema.safeParse(decodeJson(parts.header));
    if (!parts || !header?.success || header.data.alg !== "HS256") return refused("malformed access token");
    // Compare as text: the last base64url character has two unused bits, and only one encoding is accepted.
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
 * Returns the algorithm in a token's header, or `null` if it is not a JWT. `HS256` tokens are the server's own; all others
 * belong to external issuers.
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
