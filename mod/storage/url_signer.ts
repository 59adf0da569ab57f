/** Signs upload and read URLs by HMAC-SHA256 with one key; the strings of the two kinds cannot collide. */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

export interface UploadToken {
  /** 128 random bits, the key in the table of used URLs. */
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** ID of the user or administrator who generated it; `null` if signed out. */
  readonly createdBy: string | null;
}

/** `<random>.<created at>.<created by>.<signature>`; IDs consist of lower-case letters and digits. */
const UPLOAD_TOKEN = /^([A-Za-z0-9_-]{22})\.([0-9a-z]{1,11})\.([0-9a-z]{0,64})\.([A-Za-z0-9_-]{43})$/;
const EXPIRY = /^(?:0|[1-9]\d{0,14})$/;
const RANDOM_BYTES = 16;

export class UrlSigner {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  uploadToken({ createdAt, createdBy }: Omit<UploadToken, "token">): string {
    const token = randomBytes(RANDOM_BYTES).toString("base64url");
    const payload = `${token}.${Math.floor(createdAt).toString(36)}.${createdBy ?? ""}`;
    return `${payload}.${this.#sign(`upload\n${payload}`)}`;
  }

  /** Verifies a token; returns `null` if it is malformed or the signature is wrong. */
  readUploadToken(text: string): UploadToken | null {
    const match = UPLOAD_TOKEN.exec(text);
    if (match === null) return null;
    const [, token = "", createdAt = "", createdBy = "", signature = ""] = match;
    if (!this.#signed(`upload\n${token}.${createdAt}.${createdBy}`, signature)) return null;
    return { token, createdAt: parseInt(createdAt, 36), createdBy: createdBy === "" ? null : createdBy };
  }

  /** Signature of a read URL: base64url over the ID, a line feed and the expiry. */
  readSignature(id: string, exp: number): string {
    return this.#sign(`${id}\n${exp}`);
  }

  /** Returns the expiry in seconds since the epoch; `null` for a missing or malformed parameter or a wrong signature. */
  readExpiry(
    id: string,
    { exp, sig }: { readonly exp: string | undefined; readonly sig: string | undefined },
  ): number | null {
    if (exp === undefined || sig === undefined || !EXPIRY.test(exp)) return null;
    return this.#signed(`${id}\n${exp}`, sig) ? Number(exp) : null;
  }

  #sign(text: string): string {
    return createHmac("sha256", this.#key).update(text).digest("base64url");
  }

  #signed(text: string, signature: string): boolean {
    const expected = Buffer.from(this.#sign(text));
    const given = Buffer.from(signature);
    return expected.length === given.length && timingSafeEqual(expected, given);
  }
}
