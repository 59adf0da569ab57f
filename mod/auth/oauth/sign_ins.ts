/** Signing in with a provider, from the first redirect to the last, without HTTP (contract: Codes and OAuth flows). */
import { randomBytes } from "node:crypto";
import { ServiceError, serviceErrors, UserError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import type { AccountParts } from "../accounts.ts";
import type { TakenFlow } from "../isolate_functions/identities/flows.ts";
import { othersLimits } from "../limits.ts";
import { withFragment } from "../redirects.ts";
import type { Requester } from "../requester.ts";
import { system } from "../system_calls.ts";
import { sameSecret, type TokenHasher } from "../tokens/token_hash.ts";
import { type FlowSecrets, type Identified, type Provider, ProviderError } from "./provider.ts";
import { keepBrought } from "./brought.ts";

export interface SignInsOptions {
  readonly parts: AccountParts;
  /** By name, as the configuration has them now. */
  readonly providers: () => ReadonlyMap<string, Provider>;
  readonly log: Log;
}

/** A browser about to be sent to a provider. */
export interface Departure {
  readonly location: string;
  /** For the cookie. */
  readonly state: string;
}

/** What a browser brought back from a provider. */
export interface Arrival {
  readonly provider: string;
  readonly parameters: URLSearchParams;
  /** The state in the browser's cookie. */
  readonly cookie: string | null;
}

/** What becomes of a sign-in; the values go into the fragment of the app's URL. */
type Result = Readonly<Record<string, string>>;

/** A sign-in that is over. */
export interface Ended {
  /** Where in the app the browser goes, with what became of it in the fragment. */
  readonly location: string;
  /** What the status of the answer would be if it were none that leads on. */
  readonly status: number;
}

const STATE = /^[\w-]{43}$/;

export class SignIns {
  readonly #options: SignInsOptions;

  constructor(options: SignInsOptions) {
    this.#options = options;
  }

  /** Names of the providers. */
  get names(): readonly string[] {
    return [...this.#options.providers().keys()];
  }

  /** Throws `not_found`. */
  provider(name: string): Provider {
    const provider = this.#options.providers().get(name);
    if (provider === undefined) throw new ServiceError("not_found", "There is no such provider");
    return provider;
  }

  /** Whether browsers come back from it with a form, whether it is set up or not. */
  async answersWithForm(name: string): Promise<boolean> {
    const provider = this.#options.providers().get(name);
    if (provider !== undefined) return provider.formPost;
    const { presets } = await import("./presets/mod.ts");
    return presets.get(name)?.formPost === true;
  }

  /**
   * Begins a sign-in. `origin`: address of this server, to which the provider sends the browser back. Throws `not_found`,
   * `invalid_redirect`, `invalid_code` (of a link), `rate_limited`.
   */
  async begin(
    { provider: name, redirectTo, link, origin }: {
      readonly provider: string;
      readonly redirectTo: string | undefined;
      /** What a signed-in user was given to begin a link with, instead of a `redirectTo`. */
      readonly link: string | undefined;
      readonly origin: string;
    },
    requester: Requester,
  ): Promise<Departure | { readonly failed: string }> {
    const { calls, hasher, limits, now, redirects } = this.#options.parts;
    const provider = this.provider(name);
    // Of a link the page was chosen when it was prepared.
    let target = redirects.resolve(link === undefined ? redirectTo : undefined);
    limits.beginFlow(requester.client);
    const state = link ?? randomBytes(32).toString("base64url");
    const stateHash = hasher.hash("flow", state);
    const secrets = secretsOf(hasher, { state, callback: callbackOf(origin, name) });
    const { callback } = secrets;
    if (link !== undefined) {
      const begun = await calls.mutate(system.beginLink, { stateHash, provider: name, callback, now: now() });
      if (begun === null) throw new ServiceError("invalid_code");
      target = begun;
    }
    try {
      const location = await provider.authorizationUrl(secrets);
      if (link === undefined) {
        const flow = { stateHash, provider: name, redirectTo: target, callback };
        await calls.mutate(system.beginFlow, { ...flow, now: now() });
      }
      return { location, state };
    } catch (error) {
      return { failed: withFragment(target, this.#failure(error, name)) };
    }
  }

  /** Finishes a sign-in; `null` when this browser has no such one under way. Throws `rate_limited`. */
  async finish(arrival: Arrival, requester: Requester): Promise<Ended | null> {
    const { calls, hasher, limits, now } = this.#options.parts;
    limits.finishFlow(requester.client);
    // Of a provider that is not set up no sign-in is under way.
    const provider = this.#options.providers().get(arrival.provider);
    if (provider === undefined) return null;
    const [state, ...more] = arrival.parameters.getAll("state");
    if (state === undefined || more.length > 0 || !STATE.test(state)) return null;
    // Before anything is looked up: who does not have the cookie can end nobody's sign-in.
    if (arrival.cookie === null || !sameSecret(arrival.cookie, state)) return null;
    const flow = await calls.mutate(system.takeFlow, {
      stateHash: hasher.hash("flow", state),
      provider: arrival.provider,
      now: now(),
    });
    if (flow === null) return null;
    try {
      const result = await this.#result({ arrival, provider, flow, state, requester });
      return { location: withFragment(flow.redirectTo, result), status: 200 };
    } catch (error) {
      const failure = this.#failure(error, arrival.provider);
      return { location: withFragment(flow.redirectTo, failure), status: statusOf(error) };
    }
  }

  async #result(
    { arrival, provider, flow, state, requester }: {
      readonly arrival: Arrival;
      readonly provider: Provider;
      readonly flow: TakenFlow;
      readonly state: string;
      readonly requester: Requester;
    },
  ): Promise<Result> {
    const { calls, hasher, policy, sessions } = this.#options.parts;
    const secrets = secretsOf(hasher, { state, callback: flow.callback });
    const { identity, claims } = await provider.identify({ ...secrets, parameters: arrival.parameters });
    if (flow.linkFor !== null) {
      const brought = { session: flow.linkFor, provider: arrival.provider, identity };
      const token = await keepBrought(this.#options.parts, brought);
      if (token === null) {
        throw new ServiceError("session_expired", "The session that asked for the link has ended");
      }
      return { svc_link_token: token };
    }
    const prepared = sessions.prepare(requester);
    const signedIn = await calls.mutate(system.signInWithProvider, {
      arrival: {
        identity,
        provider: arrival.provider,
        claims: boundedClaims(claims),
        signups: policy.signups,
        linkByEmail: provider.linkByEmail,
        takenEmail: "refuse",
      },
      session: prepared.row,
    });
    if (!signedIn.ok) throw new ServiceError(signedIn.error);
    const tokens = sessions.issue(signedIn.session, {
      refreshToken: prepared.refreshToken,
      at: prepared.row.now,
    });
    return {
      svc_access_token: tokens.accessToken,
      svc_refresh_token: tokens.refreshToken,
      svc_expires_in: String(tokens.expiresIn),
      svc_user_id: tokens.userId ?? "",
    };
  }

  /** What the app is told of a sign-in that failed; what the provider wrote stays in the log. */
  #failure(error: unknown, provider: string): Result {
    if (error instanceof ServiceError || error instanceof UserError) {
      return { svc_error: error.code, svc_error_description: error.message };
    }
    const { log } = this.#options;
    if (error instanceof ProviderError) {
      if (error.code !== "access_denied") log("warn", `Signing in with ${provider} failed: ${error.message}`);
      return { svc_error: error.code, svc_error_description: serviceErrors[error.code][1] };
    }
    log("error", `Signing in with ${provider} failed`, { error });
    return { svc_error: "internal", svc_error_description: serviceErrors.internal[1] };
  }
}

/** What of the claims the app gets to see: those that come first, as many as there is room for. */
function boundedClaims(claims: Identified["claims"]): Record<string, unknown> {
  let left = othersLimits.claimsCharsMax;
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

export function callbackOf(origin: string, provider: string): string {
  return `${origin}/api/auth/oauth/${provider}/callback`;
}

/** The secrets follow from the state and a key that never leaves the server: the state alone gives none of them away. */
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
