/** GitHub as an OAuth app. Uses the primary address if GitHub has verified it. */
import { ClientSecretPost } from "openid-client";
import { z } from "zod";
import { broughtBy } from "../../issuers/mod.ts";
import { CodeFlow } from "../code_flow.ts";
import { appSettings, endpoint, preset } from "../preset.ts";
import { readProfile } from "../read_profile.ts";

const userSchema = z.looseObject({ id: z.number(), login: z.string(), name: z.string().nullish() });
const emailsSchema = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));

export const github = preset({
  settings: (secret) =>
    z.strictObject({
      ...appSettings(secret),
      /** Endpoints of GitHub or a GitHub Enterprise server. */
      issuer: endpoint.default("https://github.com"),
      endpoints: z.strictObject({
        authorization: endpoint.default("https://github.com/login/oauth/authorize"),
        token: endpoint.default("https://github.com/login/oauth/access_token"),
        user: endpoint.default("https://api.github.com/user"),
        emails: endpoint.default("https://api.github.com/user/emails"),
      }).prefault({}),
    }),
  open({ clientId, clientSecret, linkByEmail, issuer, endpoints }, { fetchFrom }) {
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
      authorizationUrl: (secrets) => flow.authorizationUrl(secrets, { scope: "read:user user:email" }),
      async identify(back) {
        const { accessToken } = await flow.exchange(back);
        const [user, emails] = await Promise.all([
          readProfile({ fetch, url: endpoints.user, accessToken, schema: userSchema }),
          readProfile({ fetch, url: endpoints.emails, accessToken, schema: emailsSchema }),
        ]);
        const primary = emails.find((one) => one.primary);
        const claims = {
          email: primary?.email,
          email_verified: primary?.verified,
          name: user.name ?? user.login,
        };
        return {
          identity: broughtBy({ claims }, { issuer, subject: String(user.id) }),
          claims: { ...user, ...claims },
        };
      },
    };
  },
});
