/**
 * Signs the two kinds of URL that are credentials: upload URLs and signed read URLs. Both signatures are HMAC-SHA256 under
 * one key; no text signed for one kind can be one of the other.
 */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** What an upload URL's token says. */
export interface UploadToken {
  /** 128 random bits; names the URL in the table of used ones. */
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Id of the user or administrator who generated it; `null` for nobody. */
  readonly createdBy: string | null;
}

/** `<random>.<created at>.<created by>.<signature>`; ids are of lower-case letters and digits. */
const UPLOAD_TOKEN = /^([A-Za-z0-9_-]{22})\.([0-9a-z]{1,11})\.([0-9a-z]{0,64})\.([A-Za-z0-9_-]{43})$/;
const EXPIRY = /^(?:0|[1-9]\d{0,14})$/;
const RANDOM_BYTES = 16;

export class UrlSigner {
  readonly #key: Uint8Array;

  /** `key`: 32 bytes. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** A new token for an upload URL. */
  uploadToken({ createdAt, createdBy }: Omit<UploadToken, "token">): string {
    const token = randomBytes(RANDOM_BYTES).toString("base64url");
    const payload = `${token}.${Math.floor(createdAt).toString(36)}.${createdBy ?? ""}`;
    return `${payload}.${this.#sign(`upload\n${payload}`)}`;
  }

  /** What a token says; `null` when it is malformed or wrongly signed. */
  readUploadToken(text: string): UploadToken | null {
    const match = UPLOAD_TOKEN.exec(text);
    if (match === null) return null;
    const [, token = "", createdAt = "", createdBy = "", signature = ""] = match;
    if (!this.#signed(`upload\n${token}.${createdAt}.${createdBy}`, signature)) return null;
    return { token, createdAt: parseInt(createdAt, 36), createdBy: createdBy === "" ? null : createdBy };
  }

  /** The signature of a read URL: base64url, over the id, a line feed and the expiry. */
  readSignature(id: string, exp: number): string {
    return this.#sign(`${id}\n${exp}`);
  }

  /**
   * When a signed read URL expires, in seconds since the epoch; `null` when one of the two parameters is missing, the
   * expiry is malformed, or the signature is not that of this file and expiry.
   */
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
