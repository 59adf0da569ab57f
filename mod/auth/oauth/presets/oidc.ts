/** Any OpenID issuer with a discovery document, and three well-known ones. */
import { type ClientAuth, ClientSecretBasic, ClientSecretPost } from "openid-client";
import { z } from "zod";
import { discovery, type DiscoveryDocument, type ReadToken } from "../../issuers/mod.ts";
import { OutgoingError } from "../../outgoing/bounded_fetch.ts";
import { type OpenIdEndpoints, openIdProvider } from "../open_id_provider.ts";
import { appSettings, endpoint, host, preset, type PresetParts, type Provider } from "../preset.ts";

interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly linkByEmail: boolean;
  readonly scope?: string;
  /** Hosts of its endpoints besides the issuer's host. */
  readonly hosts?: readonly string[];
  readonly profile?: (claims: ReadToken["claims"]) => ReadToken["claims"];
}

export const oidc = preset({
  settings: (secret) =>
    z.strictObject({
      ...appSettings(secret),
      issuer: endpoint,
      scope: z.string().regex(/^openid(?: [!#-[\]-~]+)*$/, 'expected scopes that begin with "openid"')
        .default("openid email profile"),
      hosts: z.array(host).max(10).default([]),
    }),
  open: (settings, parts) => oidcProvider(settings, parts),
});

/** Returns the provider of an issuer with a discovery document. */
function oidcProvider(settings: OidcSettings, { fetchFrom, now }: PresetParts): Provider {
  const { issuer, clientId, clientSecret, linkByEmail, scope = "openid email profile", profile } = settings;
  const fetch = fetchFrom([issuer], settings.hosts);
  const allowed = new Set([new URL(issuer).host, ...settings.hosts ?? []]);
  const document = discovery({ issuer, fetch, now });
  let last: { readonly of: DiscoveryDocument; readonly endpoints: OpenIdEndpoints } | null = null;
  return openIdProvider({
    issuer,
    clientId,
    clientAuth: ({ secretInBody }): ClientAuth =>
      (secretInBody ? ClientSecretPost : ClientSecretBasic)(clientSecret),
    async endpoints() {
      const of = await document.get();
      if (last?.of !== of) last = { of, endpoints: endpointsOf(of, allowed) };
      return last.endpoints;
    },
    scope,
    linkByEmail,
    fetch,
    now,
    ...(profile && { profile }),
  });
}

function endpointsOf(document: DiscoveryDocument, allowed: ReadonlySet<string>): OpenIdEndpoints {
  const { authorization_endpoint: authorization, token_endpoint: token } = document;
  // The browser, too, is only redirected to a configured host.
  const url = URL.parse(authorization ?? "");
  if (
    authorization === undefined || url === null || !allowed.has(url.host) ||
    !endpoint.safeParse(authorization).success
  ) {
    throw new OutgoingError(
      `The authorization endpoint of ${document.issuer} is not on a configured host`,
    );
  }
  if (token === undefined) throw new OutgoingError(`${document.issuer} has no token endpoint`);
  const methods = document.token_endpoint_auth_methods_supported;
  return {
    authorization,
    token,
    keys: document.jwks_uri,
    userinfo: document.userinfo_endpoint,
    answersNameIssuer: document.authorization_response_iss_parameter_supported,
    secretInBody: methods !== undefined && !methods.includes("client_secret_basic"),
  };
}

export const gitlab = preset({
  settings: (secret) =>
    z.strictObject({ ...appSettings(secret), issuer: endpoint.default("https://gitlab.com") }),
  open: (settings, parts) => oidcProvider(settings, parts),
});

export const google = preset({
  settings: (secret) =>
    z.strictObject({ ...appSettings(secret), issuer: endpoint.default("https://accounts.google.com") }),
  open: (settings, parts) =>
    oidcProvider({
      ...settings,
      hosts: ["oauth2.googleapis.com", "openidconnect.googleapis.com", "www.googleapis.com"],
    }, parts),
});

export const microsoft = preset({
  settings: (secret) =>
    z.strictObject({
      ...appSettings(secret),
      tenant: z.guid("expected the id of the tenant, such as 72f988bf-86f1-41af-91ab-2d7cd011db47"),
      /** Base URL of the tenants. */
      authority: endpoint.default("https://login.microsoftonline.com"),
    }),
  open: ({ tenant, authority, ...settings }, parts) =>
    oidcProvider({
      ...settings,
      issuer: `${authority}/${tenant}/v2.0`,
      hosts: ["graph.microsoft.com"],
      profile: ({ xms_edov: owned, ...claims }) => ({
        ...claims,
        email_verified: owned === true || owned === "1" || owned === 1,
      }),
    }, parts),
});
