/** Creates and hashes one-time codes and link tokens (CO1). */
import { randomBytes, randomInt } from "node:crypto";
import { authLimits } from "../limits.ts";
import type { TokenHasher } from "./token_hash.ts";

/** The purpose of a code or link. */
export type CodeKind = "verify" | "reset" | "magic";

export const codeLifetimeMs: Readonly<Record<CodeKind, number>> = {
  verify: authLimits.verifyCodeMs,
  reset: authLimits.resetCodeMs,
  magic: authLimits.magicCodeMs,
};

/** Name of the link token in the fragment of the app's URL, by kind. */
export const linkFragment: Readonly<Record<CodeKind, string>> = {
  verify: "svc_verify_token",
  reset: "svc_reset_token",
  magic: "svc_magic_token",
};

/** A new code and link token. The plain values only appear in the mail. */
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
  /** Normalized recipient. */
  readonly email: string;
}

/** Creates a code and link token for an address. */
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

/** Returns the stored hash of a code, bound to its kind and address. Ignores spaces. */
export function codeHash(
  hasher: TokenHasher,
  { kind, email, code }: CodeOwner & { readonly code: string },
): string {
  return hasher.hash("code", `${kind}\0${email}\0${code.replaceAll(/[\s-]/g, "")}`);
}

/** Returns the stored hash of a link token, bound to its kind. */
export function linkTokenHash(
  hasher: TokenHasher,
  { kind, token }: { readonly kind: CodeKind; readonly token: string },
): string {
  return hasher.hash("link", `${kind}\0${token}`);
}
