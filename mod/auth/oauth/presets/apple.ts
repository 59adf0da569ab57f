/** Apple: form post, ID token only, a client secret signed with the app's key, and the name at the first sign-in only. */
import { z } from "zod";
import { createPrivateKey, type KeyObject } from "node:crypto";
import { authLimits, externalLimits } from "../../limits.ts";
import { openIdProvider } from "../open_id_provider.ts";
import { endpoint, preset } from "../preset.ts";

const nameSchema = z.object({
  name: z.object({ firstName: z.string().optional(), lastName: z.string().optional() }),
});

const issuer = "https://appleid.apple.com";

const formPost = true;

export const apple = preset({
  formPost,
  settings: (secret) =>
    z.strictObject({
      clientId: z.string().min(1).max(500),
      teamId: z.string().min(1).max(100),
      keyId: z.string().min(1).max(100),
      /** Content of the key file, `-----BEGIN PRIVATE KEY-----` and so on. */
      privateKey: secret.transform(privateKey),
      linkByEmail: z.boolean().default(true),
      endpoints: z.strictObject({
        authorization: endpoint.default(`${issuer}/auth/authorize`),
        token: endpoint.default(`${issuer}/auth/token`),
        keys: endpoint.default(`${issuer}/auth/keys`),
      }).prefault({}),
    }),
  open({ clientId, teamId, keyId, privateKey, linkByEmail, endpoints }, { fetchFrom, now }) {
    const secret = new SignedClientSecret({
      clientId,
      teamId,
      keyId,
      key: privateKey,
      audience: issuer,
      now,
    });
    const provider = openIdProvider({
      issuer,
      clientId,
      clientAuth: () => async (_server, _client, body) => {
        body.set("client_id", clientId);
        body.set("client_secret", await secret.get());
      },
      endpoints: () => Promise.resolve(endpoints),
      scope: "name email",
      formPost,
      linkByEmail,
      fetch: fetchFrom(Object.values(endpoints)),
      now,
    });
    return {
      ...provider,
      async identify(back) {
        const name = nameOf(back.parameters.get("user"));
        const { identity, claims } = await provider.identify(back);
        return { identity: { ...identity, ...(name !== null && { name }) }, claims };
      },
    };
  },
});

/** Returns the name from the form field, which is not verified. */
function nameOf(field: string | null): string | null {
  if (field === null) return null;
  try {
    const { firstName = "", lastName = "" } = nameSchema.parse(JSON.parse(field)).name;
    const name = `${firstName.trim()} ${lastName.trim()}`.trim().slice(0, authLimits.nameCharsMax)
      .toWellFormed();
    return name === "" ? null : name;
  } catch {
    return null;
  }
}

interface SignedClientSecretOptions {
  readonly clientId: string;
  readonly teamId: string;
  readonly keyId: string;
  readonly key: KeyObject;
  readonly audience: string;
  readonly now: () => number;
}

class SignedClientSecret {
  readonly #options: SignedClientSecretOptions;
  #current: { readonly text: string; readonly renewAt: number } | null = null;

  constructor(options: SignedClientSecretOptions) {
    this.#options = options;
  }

  async get(): Promise<string> {
    const now = this.#options.now();
    if (this.#current === null || now >= this.#current.renewAt) {
      // Renewed at half of its lifetime, so that a returned secret remains valid long enough.
      this.#current = { text: await this.#sign(now), renewAt: now + externalLimits.clientSecretMs / 2 };
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
      .setExpirationTime(Math.floor((now + externalLimits.clientSecretMs) / 1000))
      .sign(key);
  }
}

/** Schema of a PEM key on the curve of ES256. */
function privateKey(text: string, ctx: z.RefinementCtx): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyDetails?.namedCurve === "prime256v1") return key;
  } catch {
    // Do not describe the problem: the text is a secret.
  }
  ctx.addIssue({ code: "custom", message: "expected a PEM private key on the curve P-256" });
  return undefined as never;
}
