/** A real OpenID provider on a local port. The user `person` consents immediately. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export interface OpenIdServer extends AsyncDisposable {
  readonly issuer: string;
  /** The user at the browser; `null` for a refusal. */
  person: string | null;
  /** Registers the client with these callbacks. */
  serve(redirectUris: readonly string[]): void;
  /** A token of the machine `robot` for an audience. */
  robotToken(audience: string): Promise<string>;
}

export const openIdSecret = "a-secret-of-the-app-at-the-provider";

export async function startOpenIdServer(): Promise<OpenIdServer> {
  let answer: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.end();
  const http = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const server: OpenIdServer = {
    issuer,
    person: "ann",
    serve(redirectUris) {
      const provider = new Provider(issuer, configuration(redirectUris));
      const callback = provider.callback();
      answer = (request, response) => {
        // Each sign-in is a new one, like in a private window.
        if (request.url?.startsWith("/auth?")) delete request.headers.cookie;
        if (!request.url?.startsWith("/interaction/")) return void callback(request, response);
        const result = server.person === null
          ? { error: "access_denied", error_description: "No thanks" }
          : { login: { accountId: server.person } };
        void provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
      };
    },
    async robotToken(audience) {
      const response = await fetch(`${issuer}/token`, {
        method: "POST",
        headers: { Authorization: `Basic ${btoa(`robot:${openIdSecret}`)}` },
        body: new URLSearchParams({ grant_type: "client_credentials", resource: audience }),
      });
      return (await response.json()).access_token;
    },
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  return server;
}

/** The used part of the package's untyped context. */
interface GrantContext {
  readonly oidc: {
    readonly session?: { readonly accountId: string };
    readonly client?: { readonly clientId: string };
    readonly provider: {
      readonly Grant: new (of: { clientId: string; accountId: string }) => {
        addOIDCScope(scope: string): void;
        save(): Promise<string>;
      };
    };
  };
}

function configuration(redirectUris: readonly string[]): Record<string, unknown> {
  return {
    clients: [
      {
        client_id: "app",
        client_secret: openIdSecret,
        redirect_uris: [...redirectUris],
        response_types: ["code"],
        grant_types: ["authorization_code"],
      },
      {
        client_id: "robot",
        client_secret: openIdSecret,
        redirect_uris: [],
        response_types: [],
        grant_types: ["client_credentials"],
      },
    ],
    pkce: { required: () => true },
    cookies: { keys: ["a key of the test"] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "picture"] },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx: unknown, audience: string) => ({
          audience,
          scope: "",
          accessTokenFormat: "jwt",
          ...(audience === "urn:short" && { accessTokenTTL: 2 }),
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
    ttl: { Session: 600, Interaction: 600, Grant: 600 },
    interactions: { url: (_ctx: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}` },
    findAccount: (_ctx: unknown, id: string) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        email: `${id}@example.com`,
        email_verified: true,
        name: id.toUpperCase(),
        picture: `https://pictures.example.com/${encodeURIComponent(id)}.png`,
      }),
    }),
    async loadExistingGrant(ctx: GrantContext) {
      const { session, client, provider } = ctx.oidc;
      const grant = new provider.Grant({
        clientId: client?.clientId ?? "",
        accountId: session?.accountId ?? "",
      });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
  };
}
