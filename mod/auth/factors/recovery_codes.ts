/** Creates and hashes recovery codes. */
import { randomBytes } from "node:crypto";
import { authLimits } from "../limits.ts";
import type { TokenHasher } from "../tokens/token_hash.ts";

/** 32 characters that are hard to confuse. */
const ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789";
/** 50 bits. */
const CODE_CHARS = 10;

export interface NewRecoveryCodes {
  /** Shown once, such as `k3mpa-9xw2c`. */
  readonly codes: readonly string[];
  readonly hashes: string[];
}

export function newRecoveryCodes(hasher: TokenHasher, owner: string): NewRecoveryCodes {
  const codes = Array.from({ length: authLimits.recoveryCodes }, () => {
    const chars = [...randomBytes(CODE_CHARS)].map((byte) => ALPHABET[byte % ALPHABET.length]).join("");
    return `${chars.slice(0, CODE_CHARS / 2)}-${chars.slice(CODE_CHARS / 2)}`;
  });
  return { codes, hashes: codes.map((code) => recoveryHash(hasher, { owner, code })) };
}

/** Returns the stored hash of a code, bound to its account. Ignores case, spaces and hyphens. */
export function recoveryHash(
  hasher: TokenHasher,
  { owner, code }: { readonly owner: string; readonly code: string },
): string {
  return hasher.hash("recovery", `${owner}\0${code.toLowerCase().replaceAll(/[\s-]/g, "")}`);
}
