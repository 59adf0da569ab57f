/**
 * Seals what goes over a network: nobody on the way can read it, change it, leave a frame out or send one again. Each
 * direction has a key of its own that no other connection has, and counts its frames.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv } from "node:crypto";

export interface Seal {
  seal(body: Uint8Array): Uint8Array<ArrayBuffer>;
  /** Throws for what was not sealed by the other side, or is not the next. */
  open(sealed: Uint8Array): Uint8Array<ArrayBuffer>;
}

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class Sealing implements Seal {
  readonly #keys: { readonly sends: Uint8Array; readonly receives: Uint8Array };
  #sent = 0;
  #received = 0;

  constructor(keys: { readonly sends: Uint8Array; readonly receives: Uint8Array }) {
    this.#keys = keys;
  }

  seal(body: Uint8Array): Uint8Array<ArrayBuffer> {
    const cipher = createCipheriv(CIPHER, this.#keys.sends, nonceOf(this.#sent++));
    const bytes = Buffer.concat([cipher.update(body), cipher.final(), cipher.getAuthTag()]);
    return new Uint8Array(bytes);
  }

  open(sealed: Uint8Array): Uint8Array<ArrayBuffer> {
    if (sealed.length < TAG_BYTES) throw new RangeError("A sealed frame is too short");
    const decipher = createDecipheriv(CIPHER, this.#keys.receives, nonceOf(this.#received++));
    decipher.setAuthTag(sealed.slice(sealed.length - TAG_BYTES));
    const body = decipher.update(sealed.slice(0, sealed.length - TAG_BYTES));
    return new Uint8Array(Buffer.concat([body, decipher.final()]));
  }
}

function nonceOf(count: number): Uint8Array {
  const nonce = new Uint8Array(NONCE_BYTES);
  new DataView(nonce.buffer).setFloat64(4, count);
  return nonce;
}
