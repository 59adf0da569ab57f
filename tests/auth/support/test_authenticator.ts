/** An authenticator in software, which can return all kinds of invalid responses. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { Buffer } from "node:buffer";

/** The parts of browser options that are used. */
export interface PasskeyOptions {
  readonly challenge: string;
  readonly rp?: { readonly id: string };
  readonly rpId?: string;
  readonly user?: { readonly id: string };
  readonly allowCredentials?: readonly { readonly id: string }[];
}

/** Wrong values of an answer. */
export interface InvalidValues {
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  readonly type?: string;
  readonly crossOrigin?: boolean;
  readonly topOrigin?: string;
  readonly userPresent?: boolean;
  readonly userVerified?: boolean;
  readonly backupEligible?: boolean;
  readonly backedUp?: boolean;
  readonly counter?: number;
  readonly userHandle?: string | null;
  /** Signs with another key. */
  readonly forged?: boolean;
  /** A registration is signed with the new key, as an attestation without a certificate. */
  readonly selfAttested?: boolean;
  /** CBOR of the attestation's format and statement. */
  readonly attestation?: { readonly format: string; readonly statement: Buffer };
}

export interface TestCredential {
  readonly id: string;
  readonly key: KeyObject;
  readonly userHandle: string;
  counter: number;
}

export class TestAuthenticator {
  readonly credentials: TestCredential[] = [];
  readonly #origin: string;
  /** Added to the counter at each use; 0 for an authenticator without counter. */
  readonly #step: number;

  constructor({ origin = "http://localhost:3210", step = 1 } = {}) {
    this.#origin = origin;
    this.#step = step;
  }

  /** Registers a credential. Returns the JSON of the answer. */
  create(options: PasskeyOptions, invalid: InvalidValues = {}) {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const { x = "", y = "" } = publicKey.export({ format: "jwk" });
    const id = randomBytes(16);
    const credential = {
      id: id.toString("base64url"),
      key: privateKey,
      userHandle: options.user?.id ?? "",
      counter: 0,
    };
    this.credentials.push(credential);
    const coordinate = (label: number, value: string) =>
      Buffer.concat([Buffer.from([label, 0x58, 0x20]), Buffer.from(value, "base64url")]);
    const coseKey = Buffer.concat([
      Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01]),
      coordinate(0x21, x),
      coordinate(0x22, y),
    ]);
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, coseKey]);
    const authData = authenticatorData({ ...invalid, rpId: invalid.rpId ?? options.rp?.id ?? "" }, {
      counter: invalid.counter ?? credential.counter,
      attested,
    });
    const clientDataJSON = this.#clientData("webauthn.create", options, invalid);
    const { format, statement } = invalid.attestation ??
      (invalid.selfAttested
        ? {
          format: "packed",
          statement: packedStatement(signed(authData, clientDataJSON, credential, invalid)),
        }
        : { format: "none", statement: Buffer.from([0xa0]) });
    const attestationObject = Buffer.concat([
      Buffer.from([0xa3]),
      cborText("fmt"),
      cborText(format),
      cborText("attStmt"),
      statement,
      cborText("authData"),
      Buffer.from([0x59, authData.length >> 8, authData.length & 255]),
      authData,
    ]);
    return {
      id: credential.id,
      rawId: credential.id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON,
        attestationObject: attestationObject.toString("base64url"),
        transports: ["internal"],
      },
    };
  }

  /** Signs with a credential, by default the newest. Returns the JSON of the answer. */
  get(options: PasskeyOptions, invalid: InvalidValues = {}, credential = this.credentials.at(-1)) {
    if (credential === undefined) throw new TypeError("The authenticator has no credential");
    credential.counter += this.#step;
    const authData = authenticatorData({ ...invalid, rpId: invalid.rpId ?? options.rpId ?? "" }, {
      counter: invalid.counter ?? credential.counter,
    });
    const clientDataJSON = this.#clientData("webauthn.get", options, invalid);
    const userHandle = invalid.userHandle === undefined ? credential.userHandle : invalid.userHandle;
    return {
      id: credential.id,
      rawId: credential.id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON,
        authenticatorData: authData.toString("base64url"),
        signature: signed(authData, clientDataJSON, credential, invalid).toString("base64url"),
        userHandle,
      },
    };
  }

  #clientData(type: string, { challenge }: PasskeyOptions, invalid: InvalidValues): string {
    const data = {
      type: invalid.type ?? type,
      challenge: invalid.challenge ?? challenge,
      origin: invalid.origin ?? this.#origin,
      crossOrigin: invalid.crossOrigin ?? false,
      ...(invalid.topOrigin !== undefined && { topOrigin: invalid.topOrigin }),
    };
    return Buffer.from(JSON.stringify(data)).toString("base64url");
  }
}

function authenticatorData(
  { rpId, userPresent = true, userVerified = true, backupEligible = true, backedUp = true }:
    & InvalidValues
    & { readonly rpId: string },
  { counter, attested = Buffer.alloc(0) }: { readonly counter: number; readonly attested?: Buffer },
): Buffer {
  const flags = (userPresent ? 1 : 0) | (userVerified ? 4 : 0) | (backupEligible ? 8 : 0) |
    (backedUp ? 16 : 0) | (attested.length > 0 ? 0x40 : 0);
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(counter, 1);
  return Buffer.concat([createHash("sha256").update(rpId).digest(), head, attested]);
}

/** Signs authenticator data and client data with the key of a credential. */
function signed(
  authData: Buffer,
  clientDataJSON: string,
  credential: TestCredential,
  { forged = false }: InvalidValues,
): Buffer {
  const hash = createHash("sha256").update(Buffer.from(clientDataJSON, "base64url")).digest();
  const key = forged ? generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey : credential.key;
  return sign("sha256", Buffer.concat([authData, hash]), key);
}

/** CBOR of `{ alg: -7, sig }`. */
function packedStatement(signature: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from([0xa2]),
    cborText("alg"),
    Buffer.from([0x26]),
    cborText("sig"),
    Buffer.from([0x58, signature.length]),
    signature,
  ]);
}

function cborText(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x60 + text.length]), Buffer.from(text)]);
}
