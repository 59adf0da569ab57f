/** The keyed hash under which refresh tokens, link tokens and codes are stored: useless without the server's key. */
import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import { createBLAKE3, type IHasher } from "hash-wasm";

/** What a hash is of. The same text hashed for two uses gives two hashes. */
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
  | "brought";

/** Hashes secrets with one key; keeps one hasher, which is not shared between calls as hashing never waits. */
export class TokenHasher {
  readonly #hasher: IHasher;

  private constructor(hasher: IHasher) {
    this.#hasher = hasher;
  }

  /** `key`: 32 bytes, `SecretKeys.tokenHashes`. */
  static async create(key: Uint8Array): Promise<TokenHasher> {
    return new TokenHasher(await createBLAKE3(256, key));
  }

  /** Hash of a secret, 43 URL-safe characters. */
  hash(use: HashUse, secret: string): string {
    return Buffer.from(this.bytes(use, secret)).toString("base64url");
  }

  /** Hash of a secret, 32 bytes. */
  bytes(use: HashUse, secret: string): Uint8Array {
    this.#hasher.init();
    // No use contains the separator, so no secret can imitate another use.
    this.#hasher.update(`${use}\0`);
    this.#hasher.update(secret);
    return this.#hasher.digest("binary");
  }
}

/** Whether two texts are equal, in a time that does not depend on where they differ. */
export function sameSecret(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
