/**
 * Manages the token of the connection: calls the app's getter, refreshes the token before it expires, and continues without
 * one if none is available. If the getter throws, hangs, repeats itself or responds after a sign-out, the connection still
 * gets a decision within bounded time.
 *
 * ```text
 *   anonymous ──setAuth──▶ asking ──token──▶ holding ──30 s before exp──▶ asking, token kept
 *                          ▲   │               │  ▲                          │
 *                 AuthError│   │null, or       │  └────────new token─────────┘
 *                 (force)  │   │refused twice  │AuthError
 *                          │   ▼               ▼
 *                          │ without           │
 *                          └───────────────────┘
 *   asking ──getter throws or hangs──▶ without, asked again later
 *   any ──clearAuth──▶ anonymous
 * ```
 */
import { tokenLife } from "./access_token.ts";
import { Alarm, type Clock } from "../clock.ts";
import { reportUnhandled } from "../errors.ts";
import * as clientLimits from "../limits.ts";

/**
 * Returns an access token, or `null` if no user is signed in. With `forceRefresh`, the server refused the previous token or it
 * is about to expire: do not return a cached one.
 */
export type FetchToken = (options: { readonly forceRefresh: boolean }) => Promise<string | null>;

/** Called with whether the server has accepted a token. */
export type OnAuthChange = (isAuthenticated: boolean) => void;

/** The signed-in user. */
export type AuthState =
  /** Not known yet. */
  | { readonly status: "loading" }
  /** `userId` is only known for the server's own accounts. */
  | { readonly status: "signedIn"; readonly userId: string | null }
  | { readonly status: "signedOut" };

/** Notifications to the connection. */
export interface TokenOwner {
  /** Called when the token to use changed, or when there is none. */
  tokenDecided(): void;
  /** Called when the server has accepted a token, or when there is none. */
  authChanged(isAuthenticated: boolean): void;
}

export class TokenKeeper {
  readonly #clock: Clock;
  readonly #owner: TokenOwner;
  #fetchToken: FetchToken | null = null;
  #onChange: OnAuthChange | null = null;
  /** Incremented by setAuth and clearAuth; results of older getters are ignored. */
  #generation = 0;
  /** Number of getter calls started, and of the newest one whose result was used. */
  #calls = 0;
  #lastTakenCall = 0;
  /** Whether the newest getter call is pending. */
  #asking = false;
  /** Whether the newest token came from a call with `forceRefresh`. */
  #tokenForced = false;
  #token: string | null = null;
  /** Expiry of the token; `null` if unknown. */
  #expiresAt: number | null = null;
  /** The newest token that the server refused. */
  #refused: string | null = null;
  #decided = true;
  /** Consecutive failures of the getter. */
  #failures = 0;
  /** The state last reported to the app. */
  #reported: boolean | null = null;
  /** Timeout of a hanging getter. */
  readonly #patience: Alarm;
  /** Timer of the next getter call: before expiry, or after a failure. */
  readonly #next: Alarm;

  constructor(clock: Clock, owner: TokenOwner) {
    this.#clock = clock;
    this.#owner = owner;
    this.#patience = new Alarm(clock);
    this.#next = new Alarm(clock);
  }

  /** Whether the token to use is known. The handshake and calls after setAuth wait for it. */
  get decided(): boolean {
    return this.#decided;
  }

  /** The token to use; `null` for none. */
  get token(): string | null {
    return this.#token;
  }

  setAuth(fetchToken: FetchToken, onChange: OnAuthChange | null): void {
    this.#reset();
    this.#fetchToken = fetchToken;
    this.#onChange = onChange;
    // Undecided until the getter returns, so that calls made from now on run with the new identity.
    this.#token = null;
    this.#expiresAt = null;
    this.#decided = false;
    this.#ask({ forceRefresh: false });
  }

  clearAuth(): void {
    const wasReported = this.#reported;
    const onChange = this.#onChange;
    this.stop();
    this.#useNone();
    if (wasReported === true) notify(onChange, false);
  }

  /** Cancels all timers. */
  stop(): void {
    this.#reset();
    this.#fetchToken = null;
    this.#onChange = null;
  }

  /** Called for each new socket. Does not use a token that has expired in the meantime. */
  prepare(): void {
    if (this.#token === null || this.#expiresAt === null || this.#clock.now() < this.#expiresAt) return;
    this.#token = null;
    this.#decided = false;
    if (this.#asking) this.#waitForGetter();
    else this.#ask({ forceRefresh: true });
  }

  /** The server accepted a token, or no token. */
  confirmed(token: string | null): void {
    // A later refusal means that the token or its session has ended; a new token may work.
    if (token === this.#token) this.#tokenForced = false;
    this.#report(token !== null);
  }

  /** The server refused a token: immediately if `wasConfirmed` is false, otherwise because it or its session ended. */
  refused(token: string, { wasConfirmed }: { wasConfirmed: boolean }): void {
    this.#refused = token;
    this.#token = null;
    if (this.#tokenForced && !wasConfirmed) {
      this.#next.clear();
      this.#useNone();
      this.#report(false);
      return;
    }
    this.#decided = false;
    this.#ask({ forceRefresh: true });
  }

  #reset(): void {
    this.#generation++;
    this.#asking = false;
    this.#failures = 0;
    this.#refused = null;
    this.#reported = null;
    this.#patience.clear();
    this.#next.clear();
  }

  #ask(options: { readonly forceRefresh: boolean }): void {
    const fetchToken = this.#fetchToken;
    if (fetchToken === null) return;
    const generation = this.#generation;
    const call = ++this.#calls;
    this.#asking = true;
    this.#next.clear();
    this.#waitForGetter();
    const settle = (answer: TokenAnswer) => {
      // Ignore results overtaken by a sign-out or by a later call.
      if (generation === this.#generation && call > this.#lastTakenCall) {
        this.#answered(answer, { call, ...options });
      }
    };
    // Call the getter in its own microtask: it may call setAuth or clearAuth.
    Promise.resolve().then(() => fetchToken(options)).then(
      (token) => settle({ token: typeof token === "string" ? token : null }),
      (error: unknown) => settle({ error }),
    );
  }

  #answered(answer: TokenAnswer, asked: { readonly call: number; readonly forceRefresh: boolean }): void {
    const newest = asked.call === this.#calls;
    if ("error" in answer && !newest) return;
    if (newest) {
      this.#asking = false;
      this.#patience.clear();
    }
    this.#lastTakenCall = asked.call;
    if ("error" in answer) return this.#askLater();
    if (answer.token === null) {
      this.#useNone();
      this.#report(false);
      return;
    }
    const repeated = asked.forceRefresh && answer.token === this.#token;
    if (repeated || answer.token === this.#refused) return this.#askLater();
    this.#use(answer.token, { forced: asked.forceRefresh });
  }

  /** Calls the getter again after a growing delay. Until then the current state remains. */
  #askLater(): void {
    const waitMs = Math.min(
      clientLimits.tokenRetryMaxMs,
      clientLimits.tokenRefreshMinMs * 2 ** this.#failures,
    );
    this.#failures = Math.min(this.#failures + 1, 16);
    this.#next.set(waitMs, () => this.#ask({ forceRefresh: true }));
    if (this.#token !== null) return;
    this.#useNone();
    this.#report(false);
  }

  #waitForGetter(): void {
    this.#patience.set(clientLimits.tokenFetchMs, () => this.#askLater());
  }

  #use(token: string, { forced }: { forced: boolean }): void {
    const now = this.#clock.now();
    const life = tokenLife(token, now);
    if (life !== null && life.leftMs <= 0 && !forced) return this.#ask({ forceRefresh: true });
    this.#failures = 0;
    this.#token = token;
    this.#tokenForced = forced;
    // A new token that appears expired means that the local clock is wrong: use its total lifetime.
    const lifeMs = life === null ? 0 : life.leftMs > 0 ? life.leftMs : life.fullMs;
    this.#expiresAt = lifeMs > 0 ? now + lifeMs : null;
    if (life !== null && lifeMs > 0) {
      // Short-lived tokens are refreshed with a shorter lead. A token that was just refreshed is used for its remaining time.
      const leadMs = Math.min(clientLimits.tokenRefreshLeadMs, (forced ? lifeMs : life.fullMs) / 2);
      this.#renewAt(now + lifeMs - leadMs);
    }
    this.#decide();
  }

  #renewAt(at: number): void {
    const leftMs = Math.max(clientLimits.tokenRefreshMinMs, at - this.#clock.now());
    if (leftMs > clientLimits.timerMaxMs) this.#next.set(clientLimits.timerMaxMs, () => this.#renewAt(at));
    else this.#next.set(leftMs, () => this.#ask({ forceRefresh: true }));
  }

  #useNone(): void {
    this.#token = null;
    this.#expiresAt = null;
    this.#decide();
  }

  #decide(): void {
    this.#decided = true;
    this.#owner.tokenDecided();
  }

  #report(isAuthenticated: boolean): void {
    const generation = this.#generation;
    if (this.#reported !== isAuthenticated) {
      this.#reported = isAuthenticated;
      notify(this.#onChange, isAuthenticated);
    }
    // Report the current owner, unless the app has just called setAuth or clearAuth.
    if (generation === this.#generation) this.#owner.authChanged(isAuthenticated);
  }
}

type TokenAnswer = { readonly token: string | null } | { readonly error: unknown };

function notify(onChange: OnAuthChange | null, isAuthenticated: boolean): void {
  try {
    onChange?.(isAuthenticated);
  } catch (error) {
    reportUnhandled(error);
  }
}
