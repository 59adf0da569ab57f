/** The authorization code flow with PKCE, using `openid-client` (RFC 6749, RFC 7636, RFC 9207). */
import * as client from "openid-client";
import { type BoundedFetch, isThisMachine, OutgoingError } from "../outgoing/bounded_fetch.ts";
import { signatureAlgorithms } from "../issuers/mod.ts";
import { type FlowSecrets, ProviderError, type Return } from "./preset.ts";

/** Error codes of providers for a sign-in that the user cancelled: the standard's, and Apple's. */
const SAID_NO: ReadonlySet<string> = new Set(["access_denied", "user_cancelled_authorize"]);

export interface CodeFlowOptions {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly userinfoEndpoint?: string | undefined;
  /** Whether every response contains the parameter `iss`. */
  readonly answersNameIssuer?: boolean | undefined;
  readonly clientId: string;
  readonly clientAuth: client.ClientAuth;
  readonly fetch: BoundedFetch;
}

/** Response of the token endpoint. */
export interface Grant {
  readonly accessToken: string;
  readonly idToken: string | null;
}

export class CodeFlow {
  readonly #configuration: client.Configuration;

  constructor(options: CodeFlowOptions) {
    const { issuer, authorizationEndpoint, tokenEndpoint, userinfoEndpoint, clientId, clientAuth } = options;
    this.#configuration = new client.Configuration(
      {
        issuer,
        authorization_endpoint: authorizationEndpoint,
        token_endpoint: tokenEndpoint,
        ...(userinfoEndpoint !== undefined && { userinfo_endpoint: userinfoEndpoint }),
        id_token_signing_alg_values_supported: [...signatureAlgorithms],
        authorization_response_iss_parameter_supported: options.answersNameIssuer ?? false,
      },
      clientId,
      {},
      clientAuth,
    );
    // Allowed hosts, timeouts and schemes are enforced by the bounded fetch.
    if (isThisMachine(new URL(tokenEndpoint))) client.allowInsecureRequests(this.#configuration);
    this.#configuration[client.customFetch] = (url, init) => options.fetch(url, init as RequestInit);
    this.#configuration.timeout = undefined;
  }

  /** Returns the URL to redirect the browser to. `further` adds parameters. */
  async authorizationUrl(
    { callback, state, codeVerifier }: FlowSecrets,
    further: Readonly<Record<string, string>>,
  ): Promise<string> {
    return client.buildAuthorizationUrl(this.#configuration, {
      redirect_uri: callback,
      state,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: "S256",
      ...further,
    }).href;
  }

  /** Exchanges the code. With `expectedNonce`, the response must contain an ID token with it. Throws `ProviderError`. */
  async exchange(back: Return, { expectedNonce }: { readonly expectedNonce?: string } = {}): Promise<Grant> {
    const url = new URL(back.callback);
    url.search = back.parameters.toString();
    try {
      const answer = await client.authorizationCodeGrant(this.#configuration, url, {
        pkceCodeVerifier: back.codeVerifier,
        expectedState: back.state,
        ...(expectedNonce !== undefined && { expectedNonce, idTokenExpected: true }),
      });
      return { accessToken: answer.access_token, idToken: answer.id_token ?? null };
    } catch (error) {
      throw providerError(error);
    }
  }

  /** Returns the claims of the userinfo endpoint, which must have the same subject. Throws `ProviderError`. */
  async userinfo(
    accessToken: string,
    { subject }: { readonly subject: string },
  ): Promise<Readonly<Record<string, unknown>>> {
    try {
      return await client.fetchUserInfo(this.#configuration, accessToken, subject);
    } catch (error) {
      throw providerError(error);
    }
  }
}

/** Converts an error of the library or of a request. */
export function providerError(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error;
  if (error instanceof client.AuthorizationResponseError) {
    const code = SAID_NO.has(error.error) ? "access_denied" : "provider_error";
    return new ProviderError(code, `The provider reported an error: ${printable(error.error)}`, {
      cause: error,
    });
  }
  if (error instanceof client.ResponseBodyError) {
    return new ProviderError("provider_error", `The provider rejected the code: ${printable(error.error)}`, {
      cause: error,
    });
  }
  const cause = error instanceof Error ? error.cause : undefined;
  for (const one of [error, cause]) {
    if (!(one instanceof OutgoingError)) continue;
    const code = one.answered ? "provider_error" : "provider_unavailable";
    return new ProviderError(code, one.message, { cause: error });
  }
  const reason = error instanceof Error ? error.message : "unknown";
  return new ProviderError("provider_error", `Invalid response from the provider: ${printable(reason)}`, {
    cause: error,
  });
}

/** Shortens and escapes external text for the log. */
function printable(text: string): string {
  return text.slice(0, 200).replace(/[^\x20-\x7e]/g, "?");
}
