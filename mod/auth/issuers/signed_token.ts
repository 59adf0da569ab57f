/** Parses JWTs of external issuers and verifies their signatures. */
import { Buffer } from "node:buffer";
import { z } from "zod";
import { authLimits, externalLimits } from "../limits.ts";
import { type KeySet, signatureAlgorithms } from "./key_set.ts";

const headerSchema = z.object({
  alg: z.string(),
  kid: z.string().optional(),
  typ: z.string().optional(),
  /** No critical header extension (`crit`) is supported. */
  crit: z.undefined().optional(),
});

/** Kinds of tokens; one kind is never accepted as the other. */
export type TokenKind = "access" | "id";

/** Accepted `typ` headers. Many tokens have none or just `JWT`; RFC 9068 access tokens have their own. */
const types: Readonly<Record<TokenKind, RegExp>> = {
  access: /^(?:application\/)?(?:at\+)?jwt$/i,
  id: /^(?:application\/)?jwt$/i,
};

const charsMax: Readonly<Record<TokenKind, number>> = {
  access: authLimits.accessTokenCharsMax,
  id: externalLimits.idTokenCharsMax,
};

const claimsSchema = z.record(z.string(), z.unknown());

/** The unverified header and claims of a token. */
export interface ReadToken {
  readonly text: string;
  readonly alg: string;
  readonly kid: string | undefined;
  readonly claims: Readonly<Record<string, unknown>>;
}

const PARTS = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** Returns `null` if the text is not a signed JWT. */
export function readToken(text: string, kind: TokenKind): ReadToken | null {
  if (text.length > charsMax[kind]) return null;
  const [, head, body] = PARTS.exec(text) ?? [];
  if (head === undefined || body === undefined) return null;
  const header = headerSchema.safeParse(decoded(head));
  const claims = claimsSchema.safeParse(decoded(body));
  if (!header.success || !claims.success) return null;
  const { alg, kid, typ } = header.data;
  if (typ !== undefined && !types[kind].test(typ)) return null;
  return { text, alg, kid, claims: claims.data };
}

export type SignatureFault = "unknown token signing key" | "invalid access token signature";

/** Returns what is wrong with a token's signature, or `null` if it is valid. Rejects if the keys cannot be fetched. */
export async function signatureFault(
  { text, alg, kid }: ReadToken,
  keys: KeySet,
): Promise<SignatureFault | null> {
  if (!(signatureAlgorithms as readonly string[]).includes(alg)) return "invalid access token signature";
  const key = await keys.find({ alg, kid });
  if (key === null) return "unknown token signing key";
  const { compactVerify } = await import("jose");
  try {
    await compactVerify(text, key, { algorithms: [...signatureAlgorithms] });
    return null;
  } catch {
    // An invalid signature, or a key that is too weak.
    return "invalid access token signature";
  }
}

const subjectSchema = z.string().min(1).max(externalLimits.subjectCharsMax);

const standingSchema = z.object({
  sub: subjectSchema,
  aud: z.union([z.string(), z.array(z.string())]),
  exp: z.number().max(externalLimits.expiryMax),
  nbf: z.number().optional(),
});

export type ClaimsFault =
  | "invalid access token claims"
  | "access token expired"
  | "access token not yet valid";

export type CurrentClaims =
  | { readonly ok: true; readonly subject: string; readonly expiresAt: number }
  | { readonly ok: false; readonly error: ClaimsFault };

/** Checks the claims required of every token: audience, subject, start and expiry. `now`: milliseconds. */
export function checkClaims(
  claims: ReadToken["claims"],
  { audience, now }: { readonly audience: readonly string[]; readonly now: number },
): CurrentClaims {
  const standing = standingSchema.safeParse(claims);
  if (!standing.success) return { ok: false, error: "invalid access token claims" };
  const { sub, aud, exp, nbf } = standing.data;
  const expiresAt = exp * 1000;
  if (now >= expiresAt) return { ok: false, error: "access token expired" };
  if (nbf !== undefined && nbf * 1000 > now + externalLimits.notBeforeLeewayMs) {
    return { ok: false, error: "access token not yet valid" };
  }
  if (![aud].flat().some((one) => audience.includes(one))) {
    return { ok: false, error: "invalid access token claims" };
  }
  return { ok: true, subject: sub, expiresAt };
}

function decoded(part: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(part, "base64url")));
  } catch {
    return undefined;
  }
}
