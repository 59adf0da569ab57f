/** The keyed hash of stored refresh tokens, link tokens and codes; useless without the server's key. */
import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import type { IHasher } from "hash-wasm";
// Without the other hashes of the package, which take 4 MB. This file has no types.
import blake3 from "hash-wasm/blake3";

const { createBLAKE3 } = blake3 as Pick<typeof import("hash-wasm"), "createBLAKE3">;

/** Purpose of a hash. The same value has different hashes for different purposes. */
export type HashUse =
  | "refresh"
  | "attempt"
  | "link"
  | "code"
  | "setup"
  | "access"
  | "flow"
  | "flow verifier"
  | "flow nonce"
  | "brought"
  | "challenge"
  | "recovery"
  | "passkey challenge";

/** Hashes secrets with one key. Reuses one hasher, which is safe because hashing is synchronous. */
export class TokenHasher {
  readonly #hasher: IHasher;

  private constructor(hasher: IHasher) {
    this.#hasher = hasher;
  }

  /** `key`: 32 bytes, `SecretKeys.tokenHashes`. */
  static async create(key: Uint8Array): Promise<TokenHasher> {
    return new TokenHasher(await createBLAKE3(256, key));
  }

  /** Returns the hash of a secret, 43 URL-safe characters. */
  hash(use: HashUse, secret: string): string {
    return Buffer.from(this.bytes(use, secret)).toString("base64url");
  }

  /** Returns the hash of a secret, 32 bytes. */
  bytes(use: HashUse, secret: string): Uint8Array {
    this.#hasher.init();
    // No purpose contains the separator, so a secret cannot imitate another purpose.
    this.#hasher.update(`${use}\0`);
    this.#hasher.update(secret);
    return this.#hasher.digest("binary");
  }
}

/** Compares two strings in constant time. */
export function sameSecret(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
