/** One-time codes and link tokens: how they are made and hashed (CO1). */
import { randomBytes, randomInt } from "node:crypto";
import { authLimits } from "../limits.ts";
import type { TokenHasher } from "./token_hash.ts";

/** What a code or link proves. */
export type CodeKind = "verify" | "reset" | "magic";

/** How long codes and links of each kind are valid. */
export const codeLifetimeMs: Readonly<Record<CodeKind, number>> = {
  verify: authLimits.verifyCodeMs,
  reset: authLimits.resetCodeMs,
  magic: authLimits.magicCodeMs,
};

/** Name under which a link token of each kind stands in the fragment of the app's URL. */
export const linkFragment: Readonly<Record<CodeKind, string>> = {
  verify: "svc_verify_token",
  reset: "svc_reset_token",
  magic: "svc_magic_token",
};

/** A code and a link token just made. The plain texts go into the mail and are kept nowhere else. */
export interface IssuedCode {
  /** 6 digits. */
  readonly code: string;
  /** 256 random bits, 43 URL-safe characters. */
  readonly token: string;
  readonly codeHash: string;
  readonly tokenHash: string;
}

export interface CodeOwner {
  readonly kind: CodeKind;
  /** Normalized address the mail goes to. */
  readonly email: string;
}

/** A new code and link token for an address. */
export function issueCode(hasher: TokenHasher, owner: CodeOwner): IssuedCode {
  const code = randomInt(1_000_000).toString().padStart(6, "0");
  const token = randomBytes(32).toString("base64url");
  return {
    code,
    token,
    codeHash: codeHash(hasher, { ...owner, code }),
    tokenHash: linkTokenHash(hasher, { kind: owner.kind, token }),
  };
}

/** Stored form of a code: of use for its kind and address only. Spaces, as people copy them, do not count. */
export function codeHash(
  hasher: TokenHasher,
  { kind, email, code }: CodeOwner & { readonly code: string },
): string {
  return hasher.hash("code", `${kind}\0${email}\0${code.replaceAll(/[\s-]/g, "")}`);
}

/** Stored form of a link token: of use for its kind only. */
export function linkTokenHash(
  hasher: TokenHasher,
  { kind, token }: { readonly kind: CodeKind; readonly token: string },
): string {
  return hasher.hash("link", `${kind}\0${token}`);
}
