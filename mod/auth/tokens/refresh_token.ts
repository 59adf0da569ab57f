/**
 * Refresh tokens: 32 bytes as 43 URL-safe characters, half random and half encrypted. The encrypted half contains the session's
 * family (96 random bits) and the number of rotations. A token rotated long ago is therefore still recognised as one of this
 * session without a row for each rotation, and its reuse ends the session.
 */
import { Buffer } from "node:buffer";
import {
  type Cipheriv,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type Decipheriv,
  type KeyObject,
  randomBytes,
} from "node:crypto";

/** Content of the encrypted half. */
export interface RefreshTokenClaim {
  /** The session's family, 24 hexadecimal digits. */
  readonly family: string;
  /** Number of refreshes of the session before this token. */
  readonly generation: number;
}

/** A new token. The plain value is only sent to the client. */
export interface IssuedRefreshToken extends RefreshTokenClaim {
  readonly token: string;
}

const HALF_BYTES = 16;
const FAMILY_BYTES = 12;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const GENERATION_MAX = 0xffff_ffff;

/** Creates and decrypts refresh tokens with one key. */
export class RefreshTokens {
  readonly #masks: KeyObject;
  readonly #block: KeyObject;
  readonly #successors: KeyObject;

  /** `key`: 32 bytes, `SecretKeys.refreshTokens`. */
  constructor(key: Uint8Array) {
    const derive = (use: string) =>
      createSecretKey(createHmac("sha256", createSecretKey(key)).update(use).digest());
    this.#masks = derive("mask");
    this.#block = derive("block");
    this.#successors = derive("successor");
  }

  /** Returns the first token of a new session. */
  first(): IssuedRefreshToken {
    return this.#make(
      { family: randomBytes(FAMILY_BYTES).toString("hex"), generation: 0 },
      randomBytes(HALF_BYTES),
    );
  }

  /**
   * Returns the successor of a token. With an `attemptId` it is derived from both, so that a repeated request gets the same
   * token; otherwise it is random.
   */
  next(presented: string, { attemptId }: { readonly attemptId: string | null }): IssuedRefreshToken {
    const claim = this.open(presented);
    if (claim === null || claim.generation === GENERATION_MAX) {
      throw new RangeError("Cannot rotate an unknown refresh token");
    }
    const random = attemptId === null
      ? randomBytes(HALF_BYTES)
      : createHmac("sha256", this.#successors).update(`${presented}\0${attemptId}`).digest().subarray(
        0,
        HALF_BYTES,
      );
    return this.#make({ family: claim.family, generation: claim.generation + 1 }, random);
  }

  /**
   * Decrypts a token, or returns `null` if it is malformed. Arbitrary input decrypts to a family that no session has; only the
   * stored hash proves that a token is genuine.
   */
  open(token: string): RefreshTokenClaim | null {
    if (!TOKEN.test(token)) return null;
    const bytes = Buffer.from(token, "base64url");
    // The last base64url character has two unused bits; only one encoding is accepted.
    if (bytes.toString("base64url") !== token) return null;
    const mask = this.#mask(bytes.subarray(0, HALF_BYTES));
    const decipher = createDecipheriv("aes-256-ecb", this.#block, null).setAutoPadding(false);
    const plain = xor(oneBlock(decipher, xor(bytes.subarray(HALF_BYTES), mask)), mask);
    return { family: plain.toString("hex", 0, FAMILY_BYTES), generation: plain.readUInt32BE(FAMILY_BYTES) };
  }

  #make(claim: RefreshTokenClaim, random: Buffer): IssuedRefreshToken {
    const plain = Buffer.alloc(HALF_BYTES);
    plain.write(claim.family, "hex");
    plain.writeUInt32BE(claim.generation, FAMILY_BYTES);
    const mask = this.#mask(random);
    // One block with a mask from the random half: equal claims look different, and bits cannot be flipped selectively.
    const cipher = createCipheriv("aes-256-ecb", this.#block, null).setAutoPadding(false);
    const sealed = xor(oneBlock(cipher, xor(plain, mask)), mask);
    return { ...claim, token: Buffer.concat([random, sealed]).toString("base64url") };
  }

  #mask(random: Uint8Array): Buffer {
    return createHmac("sha256", this.#masks).update(random).digest().subarray(0, HALF_BYTES);
  }
}

/** Runs a cipher over a single block. */
function oneBlock(cipher: Cipheriv | Decipheriv, block: Buffer): Buffer {
  return Buffer.concat([cipher.update(block), cipher.final()]);
}

function xor(a: Uint8Array, b: Uint8Array): Buffer {
  return Buffer.from(a.map((byte, i) => byte ^ (b[i] ?? 0)));
}
