/** Challenges for passkeys. They are not stored before their use: a MAC binds each one to its purpose and session. */
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { authLimits } from "../limits.ts";
import { sameSecret, type TokenHasher } from "../tokens/token_hash.ts";

/** A challenge to register or to prove a passkey belongs to a session; anyone may sign in. */
export type ChallengeUse =
  | { readonly purpose: "register" | "prove"; readonly session: string }
  | { readonly purpose: "sign in" };

const NONCE_BYTES = 16;
const EXPIRY_BYTES = 6;
const PREFIX_BYTES = NONCE_BYTES + EXPIRY_BYTES;
/** With the MAC of 32 bytes, base64url. */
const CHALLENGE = /^[\w-]{72}$/;

/** An open challenge, as the transaction that uses it needs it. */
export interface OpenChallenge {
  readonly hash: string;
  readonly expiresAt: number;
}

export class PasskeyChallenges {
  readonly #hasher: TokenHasher;
  readonly #now: () => number;

  constructor({ hasher, now }: { readonly hasher: TokenHasher; readonly now: () => number }) {
    this.#hasher = hasher;
    this.#now = now;
  }

  /** Creates a challenge: random bytes, its expiry and the MAC. */
  issue(use: ChallengeUse): string {
    const prefix = Buffer.alloc(PREFIX_BYTES);
    randomBytes(NONCE_BYTES).copy(prefix);
    prefix.writeUIntBE(this.#now() + authLimits.passkeyChallengeMs, NONCE_BYTES, EXPIRY_BYTES);
    return this.#signed(prefix, use);
  }

  /** Returns a challenge that was issued for this use and has not expired; otherwise `null`. */
  open(challenge: string, use: ChallengeUse): OpenChallenge | null {
    if (!CHALLENGE.test(challenge)) return null;
    const prefix = Buffer.from(challenge, "base64url").subarray(0, PREFIX_BYTES);
    if (!sameSecret(this.#signed(prefix, use), challenge)) return null;
    const expiresAt = prefix.readUIntBE(NONCE_BYTES, EXPIRY_BYTES);
    if (expiresAt <= this.#now()) return null;
    return { hash: this.#hasher.hash("passkey challenge", challenge), expiresAt };
  }

  #signed(prefix: Buffer, use: ChallengeUse): string {
    const subject = use.purpose === "sign in" ? "" : use.session;
    const bound = `${use.purpose}\0${subject}\0${prefix.toString("hex")}`;
    const mac = this.#hasher.bytes("passkey challenge", bound);
    return Buffer.concat([prefix, mac]).toString("base64url");
  }
}
