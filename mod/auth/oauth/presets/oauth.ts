/** Providers without ID tokens: Discord, and GitHub as an OAuth app. Each reads a profile with the access token. */
import { ClientSecretPost } from "openid-client";
import { z } from "zod";
import { identityFromClaims, readJson } from "../../issuers/mod.ts";
import { CodeFlow, providerError } from "../code_flow.ts";
import { appSettings, endpoint, preset, ProviderError } from "../preset.ts";
import type { BoundedFetch } from "../../outgoing/bounded_fetch.ts";

const issuer = "https://discord.com";

const discordUserSchema = z.looseObject({
  id: z.string(),
  username: z.string(),
  global_name: z.string().nullish(),
  email: z.string().nullish(),
  verified: z.boolean().optional(),
});

/** Identity and address. The address is only used if Discord has verified it. */
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
        const user = await readProfile({
          fetch,
          url: endpoints.user,
          accessToken,
          schema: discordUserSchema,
        });
        const claims = {
          email: user.email,
          email_verified: user.verified,
          name: user.global_name ?? user.username,
        };
        return {
          identity: identityFromClaims({ claims }, { issuer, subject: user.id }),
          claims: { ...user, ...claims },
        };
      },
    };
  },
});

const githubUserSchema = z.looseObject({ id: z.number(), login: z.string(), name: z.string().nullish() });
const emailsSchema = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));

/** Uses the primary address if GitHub has verified it. */
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
          readProfile({ fetch, url: endpoints.user, accessToken, schema: githubUserSchema }),
          readProfile({ fetch, url: endpoints.emails, accessToken, schema: emailsSchema }),
        ]);
        const primary = emails.find((one) => one.primary);
        const claims = {
          email: primary?.email,
          email_verified: primary?.verified,
          name: user.name ?? user.login,
        };
        return {
          identity: identityFromClaims({ claims }, { issuer, subject: String(user.id) }),
          claims: { ...user, ...claims },
        };
      },
    };
  },
});

/** Returns the profile of the access token's owner. Throws `ProviderError`. */
async function readProfile<Schema extends z.ZodType>(
  { fetch, url, accessToken, schema }: {
    readonly fetch: BoundedFetch;
    readonly url: string;
    readonly accessToken: string;
    readonly schema: Schema;
  },
): Promise<z.output<Schema>> {
  let answer: unknown;
  try {
    const headers = {
      Authorization: `Bearer ${accessToken}`,
      Accept: "application/json",
      "User-Agent": "Syncline",
    };
    answer = await readJson(await fetch(url, { headers }), "The profile");
  } catch (error) {
    throw providerError(error);
  }
  const profile = schema.safeParse(answer);
  if (profile.success) return profile.data;
  throw new ProviderError(
    "provider_error",
    `The profile is not valid: ${profile.error.issues[0]?.path.join(".")}`,
  );
}
