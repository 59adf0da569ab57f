/** Discord: identity and address. The address is only used if Discord has verified it. */
import { ClientSecretPost } from "openid-client";
import { z } from "zod";
import { broughtBy } from "../../issuers/mod.ts";
import { CodeFlow } from "../code_flow.ts";
import { appSettings, endpoint, preset } from "../preset.ts";
import { readProfile } from "../read_profile.ts";

const issuer = "https://discord.com";

const userSchema = z.looseObject({
  id: z.string(),
  username: z.string(),
  global_name: z.string().nullish(),
  email: z.string().nullish(),
  verified: z.boolean().optional(),
});

export const discord = preset({
  settings: (secret) =>
    z.strictObject({
      ...appSettings(secret),
      endpoints: z.strictObject({
        authorization: endpoint.default("https://discord.com/oauth2/authorize"),
        token: endpoint.default("https://discord.com/api/oauth2/token"),
        user: endpoint.default("https://discord.com/api/v10/users/@me"),
      }).prefault({}),
    }),
  open({ clientId, clientSecret, linkByEmail, endpoints }, { fetchFrom }) {
    const fetch = fetchFrom(Object.values(endpoints));
    const flow = new CodeFlow({
      issuer,
      authorizationEndpoint: endpoints.authorization,
      tokenEndpoint: endpoints.token,
      clientId,
      clientAuth: ClientSecretPost(clientSecret),
      fetch,
    });
    return {
      formPost: false,
      linkByEmail,
      authorizationUrl: (secrets) => flow.authorizationUrl(secrets, { scope: "identify email" }),
      async identify(back) {
        const { accessToken } = await flow.exchange(back);
        const user = await readProfile({ fetch, url: endpoints.user, accessToken, schema: userSchema });
        const claims = {
          email: user.email,
          email_verified: user.verified,
          name: user.global_name ?? user.username,
        };
        return {
          identity: broughtBy({ claims }, { issuer, subject: user.id }),
          claims: { ...user, ...claims },
        };
      },
    };
  },
});
