/**
 * Refresh tokens: 32 bytes as 43 URL-safe characters. They consist of the session's family (96 random bits), the number of
 * rotations, and an HMAC of both. A token rotated long ago is therefore still recognized as one of this session without a row
 * for each rotation, and its reuse ends the session.
 */
import { Buffer } from "node:buffer";
import { createDecipheriv, createHmac, randomBytes, timingSafeEqual } from "node:crypto";

export interface RefreshTokenClaim {
  /** The session's family, 24 hexadecimal digits. */
  readonly family: string;
  readonly generation: number;
}

/** A new token. The plain value is only sent to the client. */
export interface IssuedRefreshToken extends RefreshTokenClaim {
  readonly token: string;
}

const FAMILY_BYTES = 12;
const CLAIM_BYTES = 16;
/** The last character encodes four bits of the 32 bytes, so that there is one spelling of each token. */
const TOKEN = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Creates and opens refresh tokens with one key. */
export class RefreshTokens {
  readonly #key: Uint8Array;

  /** `key`: 32 bytes, `SecretKeys.refreshTokens`. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  first(): IssuedRefreshToken {
    return this.#make({ family: randomBytes(FAMILY_BYTES).toString("hex"), generation: 0 });
  }

  /** Returns the next token of a session. Repeating a request whose response was lost yields the same token. */
  next({ family, generation }: RefreshTokenClaim): IssuedRefreshToken {
    return this.#make({ family, generation: generation + 1 });
  }

  /** Returns the content of a token, `null` if malformed. Other 43 characters yield a family that no session has. */
  open(token: string): RefreshTokenClaim | null {
    if (!TOKEN.test(token)) return null;
    const bytes = Buffer.from(token, "base64url");
    const claim = bytes.subarray(0, CLAIM_BYTES);
    const genuine = timingSafeEqual(bytes.subarray(CLAIM_BYTES), this.#mac(claim));
    const plain = genuine ? claim : decryptedClaim(bytes, this.#key);
    return { family: plain.toString("hex", 0, FAMILY_BYTES), generation: plain.readUInt32BE(FAMILY_BYTES) };
  }

  #make(claim: RefreshTokenClaim): IssuedRefreshToken {
    const bytes = Buffer.alloc(CLAIM_BYTES);
    bytes.write(claim.family, "hex");
    bytes.writeUInt32BE(claim.generation, FAMILY_BYTES);
    return { ...claim, token: Buffer.concat([bytes, this.#mac(bytes)]).toString("base64url") };
  }

  #mac(claim: Uint8Array): Buffer {
    return createHmac("sha256", this.#key).update(claim).digest().subarray(0, CLAIM_BYTES);
  }
}

/** Reads tokens from before the HMAC. Delete this when only servers that ran this version for 30 days are updated. */
function decryptedClaim(bytes: Buffer, key: Uint8Array): Buffer {
  const derive = (use: string) => createHmac("sha256", key).update(use).digest();
  const mask = createHmac("sha256", derive("mask")).update(bytes.subarray(0, CLAIM_BYTES)).digest();
  const masked = (block: Uint8Array) => Buffer.from(block.map((byte, i) => byte ^ (mask[i] ?? 0)));
  const decipher = createDecipheriv("aes-256-ecb", derive("block"), null).setAutoPadding(false);
  return masked(Buffer.concat([decipher.update(masked(bytes.subarray(CLAIM_BYTES))), decipher.final()]));
}
