/** A client secret that is no fixed text but a token signed with the app's key (ES256), made anew before it ends. */
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
      // Made anew when half its time is over: one that was handed out just before goes on being valid for long.
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

/** For a schema: the key of a PEM text, which has to be on the curve that ES256 signs with. */
export function privateKey(text: string, ctx: z.RefinementCtx): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyDetails?.namedCurve === "prime256v1") return key;
  } catch {
    // What is wrong with the text is not told: it is a secret.
  }
  ctx.addIssue({ code: "custom", message: "expected a private key on the curve P-256, as a PEM text" });
  return undefined as never;
}
