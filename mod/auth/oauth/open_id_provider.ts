/** A provider that identifies users by an ID token (OpenID Connect Core 1.0). Presets build on it. */
import type { ClientAuth } from "openid-client";
import {
  checkClaims,
  identityFromClaims,
  KeySet,
  type ReadToken,
  readToken,
  signatureFault,
} from "../issuers/mod.ts";
import { type BoundedFetch, OutgoingError } from "../outgoing/bounded_fetch.ts";
import { sameSecret } from "../tokens/token_hash.ts";
import { CodeFlow, type Grant, providerError } from "./code_flow.ts";
import { type FlowSecrets, type Identified, type Provider, ProviderError, type Return } from "./preset.ts";

export interface OpenIdEndpoints {
  readonly authorization: string;
  readonly token: string;
  readonly keys: string;
  readonly userinfo?: string | undefined;
  readonly answersNameIssuer?: boolean | undefined;
  /** Whether the token endpoint only accepts client secrets in the body. */
  readonly secretInBody?: boolean | undefined;
}

export interface OpenIdProviderOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientAuth: (endpoints: OpenIdEndpoints) => ClientAuth;
  readonly endpoints: () => Promise<OpenIdEndpoints>;
  readonly scope: string;
  readonly formPost?: boolean;
  readonly linkByEmail: boolean;
  readonly fetch: BoundedFetch;
  readonly now: () => number;
  /** Selects the profile claims, if a provider differs from the standard. */
  readonly profile?: (claims: ReadToken["claims"]) => ReadToken["claims"];
}

export function openIdProvider(options: OpenIdProviderOptions): Provider {
  const { issuer, clientId, endpoints, fetch, now, formPost = false, linkByEmail } = options;
  const keys = new KeySet({ url: async () => (await endpoints()).keys, fetch, now });
  let made: { readonly flow: CodeFlow; readonly of: OpenIdEndpoints } | null = null;

  async function connect(): Promise<{ readonly flow: CodeFlow; readonly of: OpenIdEndpoints }> {
    const found = await endpoints().catch((error) => {
      throw providerError(error);
    });
    if (made?.of !== found) {
      const flow = new CodeFlow({
        issuer,
        authorizationEndpoint: found.authorization,
        tokenEndpoint: found.token,
        userinfoEndpoint: found.userinfo,
        answersNameIssuer: found.answersNameIssuer,
        clientId,
        clientAuth: options.clientAuth(found),
        fetch,
      });
      made = { flow, of: found };
    }
    return made;
  }

  async function identify(back: Return): Promise<Identified> {
    const { flow, of } = await connect();
    const grant = await flow.exchange(back, { expectedNonce: back.nonce });
    const token = await checked(grant.idToken, back);
    const subject = String(token.claims["sub"]);
    const found = await completed({ token, grant, flow, of, subject });
    const claims = options.profile?.(found) ?? found;
    return { identity: identityFromClaims({ claims }, { issuer, subject }), claims };
  }

  /** Verifies the ID token: issuer, signature, audience, expiry and nonce. */
  async function checked(text: string | null, { nonce }: FlowSecrets): Promise<ReadToken> {
    const token = text === null ? null : readToken(text, "id");
    if (token === null) throw refused("it contains no readable ID token");
    const { iss, aud, azp, nonce: given } = token.claims;
    if (iss !== issuer) throw refused("the ID token has another issuer");
    const fault = await signatureFault(token, keys).catch((error) => {
      throw error instanceof OutgoingError ? providerError(error) : error;
    });
    if (fault !== null) throw refused(`ID token: ${fault}`);
    const standing = checkClaims(token.claims, { audience: [clientId], now: now() });
    if (!standing.ok) throw refused(`ID token: ${standing.error}`);
    const forSeveral = Array.isArray(aud) && aud.length > 1;
    if ((forSeveral || azp !== undefined) && azp !== clientId) {
      throw refused("the ID token is for another client");
    }
    if (typeof given !== "string" || !sameSecret(given, nonce)) {
      throw refused("the ID token belongs to another sign-in");
    }
    return token;
  }

  /** Fetches the userinfo claims that many issuers omit from the ID token. */
  async function completed(
    { token, grant, flow, of, subject }: {
      readonly token: ReadToken;
      readonly grant: Grant;
      readonly flow: CodeFlow;
      readonly of: OpenIdEndpoints;
      readonly subject: string;
    },
  ): Promise<ReadToken["claims"]> {
    if (of.userinfo === undefined || token.claims["email"] !== undefined) return token.claims;
    const userinfo = await flow.userinfo(grant.accessToken, { subject });
    const { email, email_verified } = userinfo;
    // Take both from one source: a verified flag only applies to the address next to it.
    return { ...userinfo, ...token.claims, email, email_verified };
  }

  return {
    formPost,
    issuer,
    linkByEmail,
    identify,
    async authorizationUrl(secrets) {
      const { flow } = await connect();
      return await flow.authorizationUrl(secrets, {
        scope: options.scope,
        nonce: secrets.nonce,
        ...(formPost && { response_mode: "form_post" }),
      });
    },
  };
}

function refused(reason: string): ProviderError {
  return new ProviderError("provider_error", `Invalid response from the provider: ${reason}`);
}
