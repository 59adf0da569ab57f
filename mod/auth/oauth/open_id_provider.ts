/** A provider that says who came by an ID token (OpenID Connect Core 1.0). Presets are made of it. */
import type { ClientAuth } from "openid-client";
import { broughtBy, checkClaims, KeySet, type ReadToken, readToken, signatureFault } from "../issuers/mod.ts";
import { type BoundedFetch, OutgoingError } from "../outgoing/bounded_fetch.ts";
import { sameSecret } from "../tokens/token_hash.ts";
import { CodeFlow, type Grant, providerError } from "./code_flow.ts";
import { type FlowSecrets, type Identified, type Provider, ProviderError, type Return } from "./provider.ts";

/** Where an issuer is spoken to. */
export interface OpenIdEndpoints {
  readonly authorization: string;
  readonly token: string;
  readonly keys: string;
  readonly userinfo?: string | undefined;
  readonly answersNameIssuer?: boolean | undefined;
  /** Whether its token endpoint takes secrets in the body only. */
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
  /** What of the claims counts, where a provider differs from the standard. */
  readonly profile?: (claims: ReadToken["claims"]) => ReadToken["claims"];
}

export function openIdProvider(options: OpenIdProviderOptions): Provider {
  const { issuer, clientId, endpoints, fetch, now, formPost = false, linkByEmail } = options;
  const keys = new KeySet({ url: async () => (await endpoints()).keys, fetch, now });
  let made: { readonly flow: CodeFlow; readonly of: OpenIdEndpoints } | null = null;

  /** The flow at the endpoints of now. */
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
    return { identity: broughtBy({ claims }, { issuer, subject }), claims };
  }

  /** The ID token, if it is the issuer's, for us, of now and of this sign-in. */
  async function checked(text: string | null, { nonce }: FlowSecrets): Promise<ReadToken> {
    const token = text === null ? null : readToken(text, "id");
    if (token === null) throw refused("it has no ID token that can be read");
    const { iss, aud, azp, nonce: given } = token.claims;
    if (iss !== issuer) throw refused("the ID token is of another issuer");
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
      throw refused("the ID token is of another sign-in");
    }
    return token;
  }

  /** Claims that many issuers leave out of the ID token are asked for. */
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
    const told = await flow.userinfo(grant.accessToken, { subject });
    const { email, email_verified } = told;
    // Both from one source: that an address was verified says nothing of another one.
    return { ...told, ...token.claims, email, email_verified };
  }

  return {
    formPost,
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
  return new ProviderError("provider_error", `The provider's answer cannot be used: ${reason}`);
}
