/**
 * Apple: responds with a form post, identifies users by an ID token only, and requires a client secret signed with the
 * app's key. The name is part of the form at the first sign-in only.
 */
import { z } from "zod";
import { authLimits } from "../../limits.ts";
import { openIdProvider } from "../open_id_provider.ts";
import { endpoint, preset } from "../preset.ts";
import { privateKey, SignedClientSecret } from "../signed_client_secret.ts";

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
