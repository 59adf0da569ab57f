/**
 * Keeps the token of the connection: asks the app's getter for it, renews it before it expires, and goes on without one
 * when there is none to be had. Whatever the getter does (throws, hangs, repeats itself, answers after a sign-out), the
 * connection gets a decision within a bounded time.
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
 * Gets an access token, `null` when nobody is signed in. With `forceRefresh` the server refused the token given before,
 * or it is about to expire: a stored one will not do.
 */
export type FetchToken = (options: { readonly forceRefresh: boolean }) => Promise<string | null>;

/** Told whether the server has accepted a token. */
export type OnAuthChange = (isAuthenticated: boolean) => void;

/** Who is signed in. */
export type AuthState =
  /** Not known yet. */
  | { readonly status: "loading" }
  /** `userId` is known of the server's own accounts; tokens of the app's own say it to the server only. */
  | { readonly status: "signedIn"; readonly userId: string | null }
  | { readonly status: "signedOut" };

/** What the keeper tells the connection. */
export interface TokenOwner {
  /** The token to use changed, or it became clear that there is none. */
  tokenDecided(): void;
  /** The server has accepted a token, or it has become clear that there is none. */
  authTold(isAuthenticated: boolean): void;
}

export class TokenKeeper {
  readonly #clock: Clock;
  readonly #owner: TokenOwner;
  #fetchToken: FetchToken | null = null;
  #onChange: OnAuthChange | null = null;
  /** Raised by setAuth and clearAuth: answers to older getters count for nothing. */
  #generation = 0;
  /** Getter calls begun, and the newest one whose answer was taken. */
  #calls = 0;
  #lastTakenCall = 0;
  /** Whether the newest getter call is out. */
  #asking = false;
  /** Whether the newest token came from a call with `forceRefresh`. */
  #tokenForced = false;
  #token: string | null = null;
  /** When the token ends; `null` when it does not say. */
  #expiresAt: number | null = null;
  /** The newest token the server refused. */
  #refused: string | null = null;
  #decided = true;
  /** Getter failures in a row. */
  #failures = 0;
  /** What the app was told last. */
  #told: boolean | null = null;
  /** Waits for a getter that hangs. */
  readonly #patience: Alarm;
  /** Waits for the time to ask again: before expiry, or after a failure. */
  readonly #next: Alarm;

  constructor(clock: Clock, owner: TokenOwner) {
    this.#clock = clock;
    this.#owner = owner;
    this.#patience = new Alarm(clock);
    this.#next = new Alarm(clock);
  }

  /** Whether it is known which token to use; the handshake and everything after a setAuth wait for it. */
  get decided(): boolean {
    return this.#decided;
  }

  /** The token to use, `null` for none. */
  get token(): string | null {
    return this.#token;
  }

  setAuth(fetchToken: FetchToken, onChange: OnAuthChange | null): void {
    this.#reset();
    this.#fetchToken = fetchToken;
    this.#onChange = onChange;
    // Undecided until the getter answers: calls made from now on run as whom it says, not as who was there before.
    this.#token = null;
    this.#expiresAt = null;
    this.#decided = false;
    this.#ask({ forceRefresh: false });
  }

  clearAuth(): void {
    const wasTold = this.#told;
    const onChange = this.#onChange;
    this.stop();
    this.#useNone();
    if (wasTold === true) notify(onChange, false);
  }

  /** Ends all timers. */
  stop(): void {
    this.#reset();
    this.#fetchToken = null;
    this.#onChange = null;
  }

  /** A new socket needs a token: one that has expired meanwhile is not worth trying. */
  prepare(): void {
    if (this.#token === null || this.#expiresAt === null || this.#clock.now() < this.#expiresAt) return;
    this.#token = null;
    this.#decided = false;
    if (this.#asking) this.#waitForGetter();
    else this.#ask({ forceRefresh: true });
  }

  /** The server accepted a token, or that there is none. */
  confirmed(token: string | null): void {
    // A later refusal means that the token or its session has ended, which a new token may mend.
    if (token === this.#token) this.#tokenForced = false;
    this.#tell(token !== null);
  }

  /** The server refused a token: at once when `wasConfirmed` is false, else because it or its session ended. */
  refused(token: string, { wasConfirmed }: { wasConfirmed: boolean }): void {
    this.#refused = token;
    this.#token = null;
    if (this.#tokenForced && !wasConfirmed) {
      this.#next.clear();
      this.#useNone();
      this.#tell(false);
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
    this.#told = null;
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
      // An answer that was overtaken by a sign-out or by the answer to a later call counts for nothing.
      if (generation === this.#generation && call > this.#lastTakenCall) {
        this.#answered(answer, { call, ...options });
      }
    };
    // The getter runs in a turn of its own: it may call setAuth or clearAuth itself.
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
      this.#tell(false);
      return;
    }
    const repeated = asked.forceRefresh && answer.token === this.#token;
    if (repeated || answer.token === this.#refused) return this.#askLater();
    this.#use(answer.token, { forced: asked.forceRefresh });
  }

  /** Asks again after a wait that grows; until then things stay as they are, without a token if there is none. */
  #askLater(): void {
    const waitMs = Math.min(
      clientLimits.tokenRetryMaxMs,
      clientLimits.tokenRefreshMinMs * 2 ** this.#failures,
    );
    this.#failures = Math.min(this.#failures + 1, 16);
    this.#next.set(waitMs, () => this.#ask({ forceRefresh: true }));
    if (this.#token !== null) return;
    this.#useNone();
    this.#tell(false);
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
    // A new token that seems to have expired means that the local clock is wrong: its full life is what counts.
    const lifeMs = life === null ? 0 : life.leftMs > 0 ? life.leftMs : life.fullMs;
    this.#expiresAt = lifeMs > 0 ? now + lifeMs : null;
    if (life !== null && lifeMs > 0) {
      // A short life has a short lead. What is left counts for a token that was just renewed: no newer one is to be had.
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

  #tell(isAuthenticated: boolean): void {
    const generation = this.#generation;
    if (this.#told !== isAuthenticated) {
      this.#told = isAuthenticated;
      notify(this.#onChange, isAuthenticated);
    }
    // The owner each time: it may be somebody else's token. Unless the app has just called setAuth or clearAuth.
    if (generation === this.#generation) this.#owner.authTold(isAuthenticated);
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
