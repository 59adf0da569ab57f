/**
 * Refresh tokens: 32 bytes as 43 URL-safe characters, of which 16 are random and 16 are sealed. The sealed half holds the
 * session's family (96 random bits) and the count of rotations, encrypted under the server's key: to everyone else
 * it is random too. So a token rotated long ago is still recognised as this session's, without a row for each
 * rotation, and its reuse ends the session however late it comes.
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

/** What the sealed half of a refresh token says. */
export interface RefreshTokenClaim {
  /** The session's family, 24 hexadecimal digits. */
  readonly family: string;
  /** How often the session had been refreshed when this token was made. */
  readonly generation: number;
}

/** A token just made. The plain text goes to the client and is kept nowhere. */
export interface IssuedRefreshToken extends RefreshTokenClaim {
  readonly token: string;
}

const HALF_BYTES = 16;
const FAMILY_BYTES = 12;
const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const GENERATION_MAX = 0xffff_ffff;

/** Makes and opens refresh tokens with one key. */
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

  /** The first token of a new session. */
  first(): IssuedRefreshToken {
    return this.#make(
      { family: randomBytes(FAMILY_BYTES).toString("hex"), generation: 0 },
      randomBytes(HALF_BYTES),
    );
  }

  /**
   * The token that follows a presented one. With an `attemptId` it follows from the two, so that asking again gives the
   * same token; without one it is random.
   */
  next(presented: string, { attemptId }: { readonly attemptId: string | null }): IssuedRefreshToken {
    const claim = this.open(presented);
    if (claim === null || claim.generation === GENERATION_MAX) {
      throw new RangeError("Cannot follow a refresh token that is not ours");
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
   * What a token's sealed half says, or `null` for what is not a token. Text that was never a token opens to a family
   * no session has: only the stored hash proves that a token is genuine.
   */
  open(token: string): RefreshTokenClaim | null {
    if (!TOKEN.test(token)) return null;
    const bytes = Buffer.from(token, "base64url");
    // The last character has two bits to spare: one token has one spelling.
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
    // One block under a mask made from the random half: equal claims never look alike, and no bit can be changed at will.
    const cipher = createCipheriv("aes-256-ecb", this.#block, null).setAutoPadding(false);
    const sealed = xor(oneBlock(cipher, xor(plain, mask)), mask);
    return { ...claim, token: Buffer.concat([random, sealed]).toString("base64url") };
  }

  #mask(random: Uint8Array): Buffer {
    return createHmac("sha256", this.#masks).update(random).digest().subarray(0, HALF_BYTES);
  }
}

/** Runs a cipher over its only block; `final` gives back what it holds. */
function oneBlock(cipher: Cipheriv | Decipheriv, block: Buffer): Buffer {
  return Buffer.concat([cipher.update(block), cipher.final()]);
}

function xor(a: Uint8Array, b: Uint8Array): Buffer {
  return Buffer.from(a.map((byte, i) => byte ^ (b[i] ?? 0)));
}
