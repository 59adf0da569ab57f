/** This server as the relying party of passkeys: checks answers of authenticators. The library is loaded at the first use. */
import { Buffer } from "node:buffer";
import { isIP } from "node:net";
import { z } from "zod";
import { ServiceError, UserError } from "../../errors.ts";
import type { CredentialDescriptor } from "../isolate_functions/factors/own_passkeys.ts";
import { authLimits } from "../limits.ts";
import { isLoopback, type Redirects } from "../redirects.ts";

const base64url = (max: number) => z.string().max(max).regex(/^[\w-]+$/);
const credentialId = base64url(authLimits.credentialIdCharsMax);
const clientDataJSON = base64url(authLimits.clientDataCharsMax);
const blob = base64url(authLimits.attestationCharsMax);

/** `PublicKeyCredential.toJSON()` of a registration. */
export const registrationSchema = z.object({
  id: credentialId,
  rawId: credentialId,
  type: z.literal("public-key"),
  response: z.object({
    clientDataJSON,
    attestationObject: blob,
    transports: z.array(z.string().max(20)).max(10).optional(),
  }),
});

/** `PublicKeyCredential.toJSON()` of a sign-in or proof. */
export const assertionSchema = z.object({
  id: credentialId,
  rawId: credentialId,
  type: z.literal("public-key"),
  response: z.object({
    clientDataJSON,
    authenticatorData: blob,
    signature: blob,
    userHandle: base64url(100).nullish(),
  }),
});

export type Registration = z.infer<typeof registrationSchema>;
export type Assertion = z.infer<typeof assertionSchema>;

const clientDataSchema = z.object({
  challenge: z.string(),
  origin: z.string(),
  crossOrigin: z.boolean().optional(),
  topOrigin: z.string().optional(),
});

/** A registered credential, as it is stored. */
export interface NewCredential {
  readonly credentialId: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  readonly counter: number;
  readonly transports: string[];
  readonly backupEligible: boolean;
  readonly backedUp: boolean;
}

/** State of an authenticator after a use. */
export interface CredentialUse {
  readonly counter: number;
  readonly backedUp: boolean;
}

export interface RelyingPartyOptions {
  /** Origin of this server for browsers. */
  readonly publicUrl: () => string;
  /** Shown by authenticators. */
  readonly appName: () => string;
  readonly redirects: Redirects;
}

/** EdDSA, ES256 and RS256, the best first. */
const ALGORITHMS = [-8, -7, -257];

export class RelyingParty {
  readonly #options: RelyingPartyOptions;

  constructor(options: RelyingPartyOptions) {
    this.#options = options;
  }

  /** The domain that passkeys are bound to. Throws `passkeys_unavailable` if the public URL has none. */
  get id(): string {
    const { hostname } = new URL(this.#options.publicUrl());
    if (isLoopback(hostname)) return "localhost";
    if (!isIP(hostname) && !hostname.startsWith("[")) return hostname;
    throw new UserError(
      "passkeys_unavailable",
      `Passkeys need a --public-url with a domain, not ${hostname}`,
    );
  }

  /** Options of `navigator.credentials.create`. `user.id` is the handle that authenticators return. */
  creationOptions(
    { challenge, owner, label, displayName, exclude }: {
      readonly challenge: string;
      readonly owner: string;
      readonly label: string;
      readonly displayName: string;
      readonly exclude: readonly CredentialDescriptor[];
    },
  ): object {
    return {
      challenge,
      rp: { id: this.id, name: this.#options.appName() },
      user: { id: userHandleOf(owner), name: label, displayName },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: "public-key", alg })),
      excludeCredentials: exclude.map((credential) => ({ type: "public-key", ...credential })),
      authenticatorSelection: {
        residentKey: "required",
        requireResidentKey: true,
        userVerification: "required",
      },
      attestation: "none",
      timeout: authLimits.passkeyChallengeMs,
    };
  }

  /** Options of `navigator.credentials.get`. Without credentials, the user chooses a discoverable one. */
  requestOptions(
    challenge: string,
    allow: readonly CredentialDescriptor[] = [],
  ): object {
    return {
      challenge,
      rpId: this.id,
      allowCredentials: allow.map((credential) => ({ type: "public-key", ...credential })),
      userVerification: "required",
      timeout: authLimits.passkeyChallengeMs,
    };
  }

  /** Checks a registration whose challenge is known to be genuine. Throws `invalid_passkey`. */
  async checkRegistration(
    response: Registration,
    { challenge, isAdmin }: { readonly challenge: string; readonly isAdmin: boolean },
  ): Promise<NewCredential> {
    const origin = this.#checkedOrigin(response, isAdmin);
    const [{ verifyRegistrationResponse }, { decodeAttestationObject }] = await Promise.all([
      import("@simplewebauthn/server"),
      import("@simplewebauthn/server/helpers"),
    ]);
    return await refusing(async () => {
      // No attestation was requested. Other formats contain certificates, whose check makes requests to addresses in them.
      const attestation = decodeAttestationObject(
        Buffer.from(response.response.attestationObject, "base64url"),
      );
      const selfAttested = attestation.get("fmt") === "packed" && !attestation.get("attStmt").get("x5c");
      if (attestation.get("fmt") !== "none" && !selfAttested) return null;
      const { registrationInfo } = await verifyRegistrationResponse({
        response: { ...response, clientExtensionResults: {} } as Parameters<
          typeof verifyRegistrationResponse
        >[0]["response"],
        expectedChallenge: challenge,
        expectedOrigin: origin,
        expectedRPID: this.id,
        requireUserVerification: true,
        supportedAlgorithmIDs: ALGORITHMS,
      });
      if (registrationInfo === undefined || registrationInfo.credential.id !== response.id) return null;
      const { credential, credentialBackedUp, credentialDeviceType } = registrationInfo;
      return {
        credentialId: credential.id,
        publicKey: Buffer.from(credential.publicKey).toString("base64url"),
        counter: credential.counter,
        transports: response.response.transports ?? [],
        backupEligible: credentialDeviceType === "multiDevice",
        backedUp: credentialBackedUp,
      };
    });
  }

  /** Checks a signature whose challenge is known to be genuine. The counter is compared with the row later. Throws `invalid_passkey`. */
  async checkAssertion(
    response: Assertion,
    { challenge, owner, isAdmin, discovered, publicKey, backupEligible }: {
      readonly challenge: string;
      /** Id of the user or administrator. */
      readonly owner: string;
      readonly isAdmin: boolean;
      /** Whether the authenticator named the account, which was not known before. */
      readonly discovered: boolean;
      readonly publicKey: string;
      readonly backupEligible: boolean;
    },
  ): Promise<CredentialUse> {
    const origin = this.#checkedOrigin(response, isAdmin);
    const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
    return await refusing(async () => {
      const handle = response.response.userHandle ?? null;
      if (handle === null ? discovered : handle !== userHandleOf(owner)) return null;
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        response: { ...response, clientExtensionResults: {} } as Parameters<
          typeof verifyAuthenticationResponse
        >[0]["response"],
        expectedChallenge: challenge,
        expectedOrigin: origin,
        expectedRPID: this.id,
        requireUserVerification: true,
        credential: {
          id: response.id,
          publicKey: Uint8Array.from(Buffer.from(publicKey, "base64url")),
          counter: -1,
        },
      });
      // Whether a passkey can be backed up is fixed when it is created.
      const eligible = authenticationInfo.credentialDeviceType === "multiDevice";
      if (!verified || eligible !== backupEligible) return null;
      return { counter: authenticationInfo.newCounter, backedUp: authenticationInfo.credentialBackedUp };
    });
  }

  /** Returns the origin of the page that used the passkey. Throws `invalid_passkey` unless it is one of this server's pages. */
  #checkedOrigin(response: Registration | Assertion, isAdmin: boolean): string {
    const data = clientDataOf(response);
    const accepted = data !== null && data.crossOrigin !== true && data.topOrigin === undefined &&
      this.#accepts(data.origin, isAdmin);
    if (!accepted) {
      throw new ServiceError("invalid_passkey", "The passkey was used on a page of another origin");
    }
    return data.origin;
  }

  /** The server's own pages and, for users, pages on its domain that may receive tokens of sign-ins. */
  #accepts(origin: string, isAdmin: boolean): boolean {
    const url = URL.parse(origin);
    if (url === null || url.origin !== origin) return false;
    const { id } = this;
    if (url.hostname !== id && !url.hostname.endsWith(`.${id}`)) return false;
    const own = new URL(this.#options.publicUrl());
    const ownOrigin = id === "localhost" ? own.origin.replace(own.hostname, id) : own.origin;
    return origin === ownOrigin || !isAdmin && this.#options.redirects.allowsOrigin(origin);
  }
}

/** Returns the challenge in an answer; `null` if it cannot be read. */
export function challengeOf(response: Registration | Assertion): string | null {
  return clientDataOf(response)?.challenge ?? null;
}

function clientDataOf({ response }: Registration | Assertion): z.infer<typeof clientDataSchema> | null {
  try {
    return clientDataSchema.parse(JSON.parse(Buffer.from(response.clientDataJSON, "base64url").toString()));
  } catch {
    return null;
  }
}

function userHandleOf(owner: string): string {
  return Buffer.from(owner).toString("base64url");
}

/** Runs a check. Any failure of it, also of the library with malformed input, is `invalid_passkey`. */
async function refusing<Result>(check: () => Promise<Result | null>): Promise<Result> {
  const result = await check().catch(() => null);
  if (result === null) throw new ServiceError("invalid_passkey");
  return result;
}
