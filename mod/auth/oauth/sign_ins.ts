/** Provider sign-ins from the first redirect to the last, without HTTP (contract: Codes and OAuth flows). */
import { randomBytes } from "node:crypto";
import { ServiceError, serviceErrors, UserError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import type { AccountParts } from "../accounts.ts";
import type { ConsumedFlow } from "../isolate_functions/identities/flows.ts";
import { externalLimits } from "../limits.ts";
import { svcState, withFragment } from "../redirects.ts";
import type { Requester } from "../attempt_limits.ts";
import { system } from "../system_calls.ts";
import type { Tokens } from "../tokens/session_tokens.ts";
import { sameSecret, type TokenHasher } from "../tokens/token_hash.ts";
import { type FlowSecrets, type Identified, type Provider, ProviderError } from "./preset.ts";

interface SignInsOptions {
  readonly parts: AccountParts;
  /** The currently configured providers by name. */
  readonly providers: () => ReadonlyMap<string, Provider>;
  readonly log: Log;
}

/** A browser to redirect to a provider. */
interface Departure {
  readonly location: string;
  /** Value of the state cookie. */
  readonly state: string;
}

/** The request with which a browser returns. */
interface Arrival {
  readonly provider: string;
  readonly parameters: URLSearchParams;
  /** State from the browser's cookie. */
  readonly cookie: string | null;
}

/** Result of a sign-in, passed in the fragment of the app's URL. */
type Result = Readonly<Record<string, string>>;

interface Ended {
  /** The app's URL with the result in the fragment. */
  readonly location: string;
  /** The status the response would have without the redirect; `null` if the client still has to sign in with the result. */
  readonly status: number | null;
}

const STATE = /^[\w-]{43}$/;

export class SignIns {
  readonly #options: SignInsOptions;

  constructor(options: SignInsOptions) {
    this.#options = options;
  }

  get names(): readonly string[] {
    return [...this.#options.providers().keys()];
  }

  /** Throws `not_found`. */
  provider(name: string): Provider {
    const provider = this.#options.providers().get(name);
    if (provider === undefined) throw new ServiceError("not_found", "The provider does not exist");
    return provider;
  }

  /** Whether a provider responds with a form post, even if it is not configured. */
  async answersWithForm(name: string): Promise<boolean> {
    const provider = this.#options.providers().get(name);
    if (provider !== undefined) return provider.formPost;
    const { presets } = await import("./presets/mod.ts");
    return presets.get(name)?.formPost === true;
  }

  /** Starts a sign-in. Throws `not_found`, `invalid_redirect`, `invalid_code` (for a link), `rate_limited`. */
  async begin(
    { provider: name, redirectTo, link, appState, origin }: {
      readonly provider: string;
      readonly redirectTo: string | undefined;
      /** Token of a prepared link, instead of a `redirectTo`. */
      readonly link: string | undefined;
      /** State by which the client recognizes the result; see `APP_STATE`. */
      readonly appState: string | undefined;
      /** Origin of this server, for the provider's callback. */
      readonly origin: string;
    },
    requester: Requester,
  ): Promise<Departure | { readonly failed: string }> {
    const { calls, hasher, limits, now, redirects } = this.#options.parts;
    const provider = this.provider(name);
    // The redirect of a link was chosen when it was prepared.
    let target = redirects.resolve(link === undefined ? redirectTo : undefined);
    limits.beginFlow(requester.client);
    const state = link ?? randomBytes(32).toString("base64url");
    const stateHash = hasher.hash("flow", state);
    const secrets = secretsOf(hasher, { state, callback: callbackOf(origin, name) });
    const { callback } = secrets;
    if (link !== undefined) {
      const begun = await calls.mutate(system.beginLink, {
        ...{ stateHash, provider: name, callback, now: now() },
        ...(appState !== undefined && { appState }),
      });
      if (begun === null) throw new ServiceError("invalid_code");
      target = begun;
    }
    try {
      const location = await provider.authorizationUrl(secrets);
      if (link === undefined) {
        const flow = {
          ...{ stateHash, provider: name, redirectTo: target, callback },
          ...(appState !== undefined && { appState }),
        };
        await calls.mutate(system.beginFlow, { ...flow, now: now() });
      }
      return { location, state };
    } catch (error) {
      return { failed: withFragment(target, { ...this.#failure(error, name), ...svcState(appState) }) };
    }
  }

  /** Finishes a sign-in; `null` if it is not pending in this browser. Throws `rate_limited`. */
  async finish(arrival: Arrival, requester: Requester): Promise<Ended | null> {
    const { calls, hasher, limits, now } = this.#options.parts;
    limits.finishFlow(requester.client);
    // A provider that is not configured has no pending sign-ins.
    const provider = this.#options.providers().get(arrival.provider);
    if (provider === undefined) return null;
    const [state, ...more] = arrival.parameters.getAll("state");
    if (state === undefined || more.length > 0 || !STATE.test(state)) return null;
    // Check the cookie first, so that no one can use up the sign-in of another browser.
    if (arrival.cookie === null || !sameSecret(arrival.cookie, state)) return null;
    const flow = await calls.mutate(system.takeFlow, {
      stateHash: hasher.hash("flow", state),
      provider: arrival.provider,
      now: now(),
    });
    if (flow === null) return null;
    try {
      const result = await this.#result({ arrival, provider, flow, state, requester });
      return {
        location: withFragment(flow.redirectTo, { ...result, ...svcState(flow.appState) }),
        status: "svc_sign_in_token" in result ? null : 200,
      };
    } catch (error) {
      const failure = this.#failure(error, arrival.provider);
      const location = withFragment(flow.redirectTo, { ...failure, ...svcState(flow.appState) });
      return { location, status: statusOf(error) };
    }
  }

  async #result(
    { arrival, provider, flow, state, requester }: {
      readonly arrival: Arrival;
      readonly provider: Provider;
      readonly flow: ConsumedFlow;
      readonly state: string;
      readonly requester: Requester;
    },
  ): Promise<Result> {
    const { calls, hasher, now } = this.#options.parts;
    const secrets = secretsOf(hasher, { state, callback: flow.callback });
    const { identity, claims } = await provider.identify({ ...secrets, parameters: arrival.parameters });
    const token = randomBytes(32).toString("base64url");
    const isStored = await calls.mutate(system.storeIdentity, {
      ...{
        tokenHash: hasher.hash("brought", token),
        session: flow.linkFor,
        provider: arrival.provider,
        identity,
      },
      signUp: { claims: boundedClaims(claims), linkByEmail: provider.linkByEmail },
      now: now(),
    });
    if (!isStored) throw new ServiceError("session_expired", "The session that requested the link has ended");
    if (flow.linkFor !== null) return { svc_link_token: token };
    // The client signs in with the token and sends its session, which may be that of an anonymous user.
    if (flow.appState !== undefined) return { svc_sign_in_token: token };
    const tokens = await this.#signIn(token, requester);
    return {
      svc_access_token: tokens.accessToken,
      svc_refresh_token: tokens.refreshToken,
      svc_expires_in: String(tokens.expiresIn),
      svc_user_id: tokens.userId ?? "",
    };
  }

  /** Signs in with the token of a returned identity. Throws `invalid_code`, `rate_limited`, the errors of a sign-up and `mfa_required`. */
  verify(token: string, requester: Requester): Promise<Tokens> {
    this.#options.parts.limits.finishFlow(requester.client);
    return this.#signIn(token, requester);
  }

  async #signIn(token: string, requester: Requester): Promise<Tokens> {
    const { calls, hasher, policy, sessions } = this.#options.parts;
    const prepared = sessions.prepare(requester);
    const signedIn = await calls.mutate(system.signInWithProvider, {
      tokenHash: hasher.hash("brought", token),
      signups: policy.signups,
      session: prepared.row,
    });
    if (signedIn === null) throw new ServiceError("invalid_code");
    if (!signedIn.ok) throw new ServiceError(signedIn.error);
    return await sessions.complete(signedIn.session, prepared);
  }

  /** The error passed to the app. Details from the provider are only logged. */
  #failure(error: unknown, provider: string): Result {
    if (error instanceof ServiceError || error instanceof UserError) {
      const failure = { svc_error: error.code, svc_error_description: error.message };
      if (error instanceof UserError || error.data === null) return failure;
      return { ...failure, svc_error_data: JSON.stringify(error.data) };
    }
    const { log } = this.#options;
    if (error instanceof ProviderError) {
      if (error.code !== "access_denied") log("warn", `Sign-in with ${provider} failed: ${error.message}`);
      return { svc_error: error.code, svc_error_description: serviceErrors[error.code][1] };
    }
    log("error", `Sign-in with ${provider} failed`, { error });
    return { svc_error: "internal", svc_error_description: serviceErrors.internal[1] };
  }
}

/** Returns the claims for the app, up to the limit. */
function boundedClaims(claims: Identified["claims"]): Record<string, unknown> {
  let left = externalLimits.claimsCharsMax;
  const kept = Object.entries(claims).filter(([name, value]) => {
    if (value === undefined) return false;
    left -= name.length + JSON.stringify(value).length;
    return left >= 0;
  });
  return Object.fromEntries(kept);
}

function statusOf(error: unknown): number {
  if (error instanceof ServiceError) return error.status;
  if (error instanceof ProviderError) return serviceErrors[error.code][0];
  return error instanceof UserError ? 400 : 500;
}

/** Returns the callback address to register at a provider. */
export function callbackOf(origin: string, provider: string): string {
  return `${origin}/api/auth/oauth/${provider}/callback`;
}

/** Derives the secrets from the state and the server's key; the state alone reveals none of them. */
function secretsOf(
  hasher: TokenHasher,
  { state, callback }: Pick<FlowSecrets, "state" | "callback">,
): FlowSecrets {
  return {
    callback,
    state,
    codeVerifier: hasher.hash("flow verifier", state),
    nonce: hasher.hash("flow nonce", state),
  };
}
