/** A client secret that is a token signed with the app's key (ES256), renewed before it expires. */
import { createPrivateKey, type KeyObject } from "node:crypto";
import type { z } from "zod";
import { othersLimits } from "../limits.ts";

export interface SignedClientSecretOptions {
  readonly clientId: string;
  readonly teamId: string;
  readonly keyId: string;
  readonly key: KeyObject;
  readonly audience: string;
  readonly now: () => number;
}

export class SignedClientSecret {
  readonly #options: SignedClientSecretOptions;
  #current: { readonly text: string; readonly renewAt: number } | null = null;

  constructor(options: SignedClientSecretOptions) {
    this.#options = options;
  }

  async get(): Promise<string> {
    const now = this.#options.now();
    if (this.#current === null || now >= this.#current.renewAt) {
      // Renewed at half of its lifetime, so that a returned secret remains valid long enough.
      this.#current = { text: await this.#sign(now), renewAt: now + othersLimits.clientSecretMs / 2 };
    }
    return this.#current.text;
  }

  async #sign(now: number): Promise<string> {
    const { clientId, teamId, keyId, key, audience } = this.#options;
    const { SignJWT } = await import("jose");
    return await new SignJWT()
      .setProtectedHeader({ alg: "ES256", kid: keyId })
      .setIssuer(teamId)
      .setSubject(clientId)
      .setAudience(audience)
      .setIssuedAt(Math.floor(now / 1000))
      .setExpirationTime(Math.floor((now + othersLimits.clientSecretMs) / 1000))
      .sign(key);
  }
}

/** Schema of a PEM key on the curve of ES256. */
export function privateKey(text: string, ctx: z.RefinementCtx): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyDetails?.namedCurve === "prime256v1") return key;
  } catch {
    // Do not describe the problem: the text is a secret.
  }
  ctx.addIssue({ code: "custom", message: "expected a PEM private key on the curve P-256" });
  return undefined as never;
}
