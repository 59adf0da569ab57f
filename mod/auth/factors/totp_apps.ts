/** Authenticator apps (TOTP): creates and encrypts their secrets, and checks codes. Libraries are loaded at the first use. */
import { randomBytes } from "node:crypto";
import { decryptSecret, encryptSecret } from "../../kit/secret_encryption.ts";
import { authLimits } from "../limits.ts";

/** A new app, as its user needs it. */
export interface NewTotpApp {
  /** Base32, to type in. */
  readonly secret: string;
  /** An `otpauth:` URI, which a link can open. */
  readonly uri: string;
  /** The URI as a QR code, an SVG image. */
  readonly qrCode: string;
  /** The secret as it is stored. */
  readonly encrypted: string;
}

/** 160 bits, as RFC 4226 recommends. */
const SECRET_BYTES = 20;
const CODE = /^\d{6}$/;

export class TotpApps {
  readonly #key: Uint8Array;

  /** `key`: 32 bytes, `SecretKeys.factors`. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Creates the secret of an account's app. `issuer` and `label` are shown in the app. */
  async create(
    { owner, issuer, label }: { readonly owner: string; readonly issuer: string; readonly label: string },
  ): Promise<NewTotpApp> {
    const [{ Secret, TOTP }, { renderSVG }] = await Promise.all([import("otpauth"), import("uqr")]);
    const secret = new Secret({ buffer: new Uint8Array(randomBytes(SECRET_BYTES)).buffer });
    // A colon separates issuer and label in the URI.
    const uri = new TOTP({ issuer: issuer.replaceAll(":", " "), label, secret }).toString();
    return {
      secret: secret.base32,
      uri,
      qrCode: renderSVG(uri, { border: 2 }),
      encrypted: encryptSecret(secret.base32, { key: this.#key, name: nameOf(owner) }),
    };
  }

  /** Returns the time step of a code; `null` if it is wrong, or the secret was encrypted with another key. */
  async stepOf(
    { owner, encrypted, code, now }: {
      readonly owner: string;
      readonly encrypted: string;
      readonly code: string;
      readonly now: number;
    },
  ): Promise<number | null> {
    const digits = code.replaceAll(/[\s-]/g, "");
    const base32 = decryptSecret(encrypted, { key: this.#key, name: nameOf(owner) });
    if (base32 === null || !CODE.test(digits)) return null;
    const { Secret, TOTP } = await import("otpauth");
    const totp = new TOTP({ secret: Secret.fromBase32(base32), period: authLimits.totpStepMs / 1000 });
    const drift = totp.validate({ token: digits, timestamp: now, window: authLimits.totpDriftSteps });
    return drift === null ? null : Math.floor(now / authLimits.totpStepMs) + drift;
  }
}

/** Binds the encryption to the account, so that a copied row does not work for another one. */
function nameOf(owner: string): string {
  return `totp ${owner}`;
}
