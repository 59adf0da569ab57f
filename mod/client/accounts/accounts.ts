/** `client.auth`: signs users in and out, and keeps the connection's token fresh. */
import type { FunctionReference } from "../../protocol/function_reference.ts";
import {
  type AccountError,
  accountError,
  type CallAccounts,
  callAccounts,
  type Refusal,
  type Tokens,
} from "./account_calls.ts";
import { AccountSession, type TokenStorage } from "./account_session.ts";
import { httpAddress, withParameters } from "../connection/addresses.ts";
import type { AuthState, FetchToken } from "./auth.ts";
import { type Clock, within } from "../clock.ts";
import { reportUnhandled } from "../errors.ts";
import * as clientLimits from "../limits.ts";
import { SynclineHttpClient } from "../http/http_client.ts";
import type { JsonObject } from "../json_args.ts";
import {
  type OwnAccount,
  ownAccount,
  ownIdentities,
  type OwnIdentity,
  type OwnSession,
  ownSessions,
} from "./own_account.ts";
import { beginFlow, takeFlow } from "./flows.ts";
import { endPopup, signInByPopup } from "./popup.ts";
import { connectTabs, type Tabs } from "./tabs.ts";

export interface AccountOptions {
  /** Token storage. Default: `localStorage` in a page, memory elsewhere. */
  readonly storage?: TokenStorage;
  readonly fetch?: typeof fetch;
}

/** The token of a link, or the email address and code from the same mail. */
export type EmailProof = { readonly token: string } | { readonly email: string; readonly code: string };

export interface EmailRequest {
  readonly email: string;
  /** Page that the link in the mail opens. Must be on the server's allowlist. */
  readonly redirectTo?: string;
}

/** Sign-in methods offered by the server. */
export interface SignInWays {
  readonly password: boolean;
  readonly magicLink: boolean;
  readonly signups: boolean;
  /** Whether users can sign in without an account. */
  readonly anonymous: boolean;
  /** Names of OAuth providers. */
  readonly oauth: readonly string[];
}

/** The result found in the page's address. */
export type RedirectResult =
  | { readonly type: "none" }
  /** Signed in by an OAuth provider, or by a magic link requested in this browser. */
  | { readonly type: "signedIn" }
  /**
   * A magic link that this browser did not request. Anyone can send a link to their own account, so ask the user before calling
   * `signInWithMagic` with the token.
   */
  | { readonly type: "magicLink"; readonly token: string }
  /** Tokens of a sign-in that this browser did not start. They are removed from the address and ignored. */
  | { readonly type: "ignored" }
  /** An additional identity was linked to the account. For an anonymous user, the result is `signedIn` instead. */
  | { readonly type: "linked"; readonly provider: string }
  | { readonly type: "emailVerified" }
  /** A password reset link: ask for a new password and call `resetPassword` with the token. */
  | { readonly type: "resetPassword"; readonly token: string };

/** The part of the page's history that is used; platforms without pages lack the type. */
interface PageHistory {
  readonly state: unknown;
  replaceState(state: unknown, unused: string, address: string): void;
}

/** The source of a connection's tokens. */
export interface TokenHolder {
  /** The user of the current token, if known. */
  userId: string | null;
}

/** Shared between the accounts and the app, which may provide its own tokens. */
export interface TokenPlace {
  /** The current token source; `null` initially. */
  holder(): TokenHolder | null;
  use(holder: TokenHolder, fetchToken: FetchToken): void;
}

/** The connection to sign in. */
export interface AccountConnection {
  authState(): AuthState;
  query<Result>(query: FunctionReference<"query", Record<string, never>, Result>): Promise<Result>;
  mutation(mutation: `_auth:${string}`, args: JsonObject): Promise<unknown>;
  action(action: `_auth:${string}`, args: JsonObject): Promise<unknown>;
}

export class Accounts {
  readonly #server: string | URL;
  readonly #call: CallAccounts;
  /** Calls functions with the stored session, regardless of the connection's token. */
  readonly #asSession: SynclineHttpClient;
  readonly #session: AccountSession;
  readonly #connection: AccountConnection;
  readonly #tabs: Tabs;
  readonly #clock: Clock;
  readonly #place: TokenPlace;
  readonly #holder: TokenHolder = { userId: null };
  /** Whether the page's address contained the result of a sign-in started by this browser. */
  #hasBegun = false;
  readonly #onRefusal = new Set<(error: AccountError) => void>();

  /** Signs the connection in with the stored tokens, unless it uses another source. */
  constructor(
    server: string | URL,
    options: AccountOptions & {
      readonly fetch: typeof fetch;
      readonly connection: AccountConnection;
      readonly place: TokenPlace;
      readonly clock: Clock;
    },
  ) {
    this.#server = server;
    this.#connection = options.connection;
    this.#clock = options.clock;
    this.#place = options.place;
    const key = `syncline-auth ${httpAddress(server, "")}`;
    this.#call = callAccounts(server, options.fetch);
    this.#tabs = connectTabs(key, (refusal) => {
      if (refusal) this.#refused(refusal);
      else void this.#changedElsewhere().catch(reportUnhandled);
    });
    const storage = options.storage ?? platformStorage();
    this.#session = new AccountSession({
      call: this.#call,
      storage,
      tabs: this.#tabs,
      key,
      clock: options.clock,
    });
    this.#asSession = new SynclineHttpClient(server, {
      token: () => this.#session.fetchToken({ forceRefresh: false }),
      fetch: options.fetch,
    });
    if (this.#place.holder() === null) this.#use();
  }

  /** All methods below throw `AccountError` with the contract's code if the server refuses. */
  async signInWays(): Promise<SignInWays> {
    return await this.#call("providers", null) as SignInWays;
  }

  /**
   * Creates an account and signs in, unless the email address must be verified first.
   *
   * @throws An error without a code if there is no response within 40 seconds. The server may have created the account.
   */
  async signUp(
    account: { email: string; password: string; name?: string },
  ): Promise<{ verificationRequired: boolean }> {
    return await this.#enter("signup", account);
  }

  /** @throws An error without a code if there is no response within 40 seconds. The server may have opened a session. */
  async signIn(credentials: { email: string; password: string }): Promise<void> {
    await this.signInAt("signin", credentials);
  }

  /**
   * Posts to a sign-in endpoint below `/api/auth` and stores the tokens of its response. For `syncline/accounts`.
   *
   * @throws An error without a code if there is no response within 40 seconds. The sign-in may have succeeded on the server.
   */
  async signInAt(path: string, body: object): Promise<void> {
    await this.#enter(path, body);
  }

  /**
   * Posts as the current session, because an anonymous user keeps its data. That session ends before the new tokens are here: the
   * lock delays a refresh until then, for a bounded time, because other tabs wait for it too.
   */
  async #enter(path: string, body: object): Promise<{ verificationRequired: boolean }> {
    const token = await this.#session.fetchToken({ forceRefresh: false });
    return await this.#tabs.alone(async () => {
      const options = { clock: this.#clock, timeoutMs: clientLimits.httpCallMs };
      const answer = await within(options, (signal) => this.#call(path, body, { token, signal }));
      const { verificationRequired = false } = answer as { verificationRequired?: boolean };
      if (!verificationRequired) await this.#signedIn(answer);
      return { verificationRequired };
    });
  }

  /** Mails a magic link and a code. If opened in this browser within an hour, the link signs in immediately. */
  async requestMagicLink(request: EmailRequest): Promise<void> {
    const appState = beginFlow(this.#clock.now());
    await this.#call("magic/request", { ...request, ...appState !== null && { appState } });
  }

  async signInWithMagic(proof: EmailProof): Promise<void> {
    await this.signInAt("magic/verify", proof);
  }

  async requestEmailVerification(request: EmailRequest): Promise<void> {
    await this.#call("verify-email/request", request);
  }

  async verifyEmail(proof: EmailProof): Promise<void> {
    await this.#call("verify-email/confirm", proof);
  }

  async requestPasswordReset(request: EmailRequest): Promise<void> {
    await this.#call("reset/request", request);
  }

  /** Sets a new password, ends all other sessions and signs in. */
  async resetPassword(proof: EmailProof & { password: string }): Promise<void> {
    await this.signInAt("reset/confirm", proof);
  }

  /**
   * Returns the URL to which to send the page for signing in with a provider. The provider returns to `redirectTo`. In a page,
   * each URL is valid for one sign-in within an hour: call this when the user leaves.
   */
  oauthAddress(provider: string, redirectTo: string): string {
    return this.#beginOAuth(provider, { redirect_to: redirectTo }).address;
  }

  #beginOAuth(
    provider: string,
    parameters: Readonly<Record<string, string>>,
  ): { readonly address: string; readonly state: string | null } {
    const address = httpAddress(this.#server, `api/auth/oauth/${encodeURIComponent(provider)}`);
    const state = beginFlow(this.#clock.now());
    return { address: withParameters(address, { ...parameters, app_state: state }), state };
  }

  /**
   * Navigates to a provider, which returns to `redirectTo`. Default: the current page. An anonymous user signs up with the identity,
   * or signs in as the user to whom it belongs.
   */
  signInWithOAuth(provider: string, { redirectTo }: { readonly redirectTo?: string } = {}): void {
    leaveFor(this.oauthAddress(provider, redirectTo ?? pageAddress()));
  }

  /**
   * Signs in with a provider in a popup window, which returns to `redirectTo`: a page of this app that calls
   * `completeRedirect`. Call this directly in a click handler.
   */
  async signInWithPopup(
    provider: string,
    { redirectTo }: { readonly redirectTo?: string } = {},
  ): Promise<void> {
    const begun = this.#beginOAuth(provider, { redirect_to: redirectTo ?? pageAddress() });
    try {
      await signInByPopup(begun.address, this.#clock);
    } finally {
      // A window that was closed early leaves its state behind.
      takeFlow(begun.state, this.#clock.now());
    }
    // The window has stored the tokens.
    this.#use();
  }

  /**
   * Navigates to a provider to link an additional identity to the signed-in user; see `completeRedirect`. Without the account's
   * password, it fails with `confirmation_required` ten minutes after the sign-in, or with `factor_required`. For an anonymous
   * user, this is `signInWithOAuth`.
   */
  async linkIdentity(
    provider: string,
    options: { readonly redirectTo?: string; readonly password?: string } = {},
  ): Promise<void> {
    const asked = { provider, ...options, redirectTo: options.redirectTo ?? pageAddress() };
    const { link } = await this.#asSession.action("_auth:startLink", asked) as { link: string };
    leaveFor(this.#beginOAuth(provider, { link }).address);
  }

  /** Returns the account's identities; `ownIdentities` is the same as a live query. */
  identities(): Promise<OwnIdentity[]> {
    return this.#connection.query(ownIdentities);
  }

  /** Unlinks an identity. Fails with `last_way_in` if the user could not sign in any other way. */
  async unlinkIdentity(identityId: string): Promise<void> {
    await this.#connection.action("_auth:unlinkIdentity", { identityId });
  }

  /**
   * Handles the result of an OAuth provider or mail link in the page's address, and removes it from the address. Call it once
   * when a page starts. Tokens are only accepted from a sign-in that this browser started with `signInWithOAuth`,
   * `signInWithPopup`, `oauthAddress` or `requestMagicLink`. Throws `AccountError` if the provider or the server refused.
   */
  async completeRedirect(): Promise<RedirectResult> {
    const { location, history } = globalThis as { location?: Location; history?: PageHistory };
    if (location === undefined || history === undefined) return { type: "none" };
    const fields = new URLSearchParams(location.hash.slice(1));
    if (![...fields.keys()].some((name) => name.startsWith("svc_"))) return { type: "none" };
    // Remove tokens from the address, because addresses are copied and shared.
    history.replaceState(history.state, "", location.pathname + location.search);
    this.#hasBegun = takeFlow(fields.get("svc_state"), this.#clock.now());
    const code = fields.get("svc_error");
    if (code !== null) {
      // Only a sign-in of this browser can be continued.
      const data = this.#hasBegun ? JSON.parse(fields.get("svc_error_data") ?? "null") : null;
      throw this.#refuse([code, fields.get("svc_error_description") ?? "", data]);
    }
    const [link, reset, verify, magic, token] = ["link", "reset", "verify", "magic", "sign_in"].map((name) =>
      fields.get(`svc_${name}_token`)
    );
    if (link) {
      const linking = this.#asSession.action("_auth:linkIdentity", { token: link });
      const { provider } = await this.#refusing(linking) as { provider: string };
      return { type: "linked", provider };
    }
    if (reset) return { type: "resetPassword", token: reset };
    if (verify) {
      await this.verifyEmail({ token: verify });
      return { type: "emailVerified" };
    }
    if (!this.#hasBegun) return magic ? { type: "magicLink", token: magic } : { type: "ignored" };
    if (magic) await this.signInWithMagic({ token: magic });
    else if (token) await this.#refusing(this.signInAt("oauth/verify", { token }));
    else {
      await this.#signedIn({
        accessToken: fields.get("svc_access_token"),
        refreshToken: fields.get("svc_refresh_token"),
        userId: fields.get("svc_user_id"),
      });
    }
    endPopup(null);
    return { type: "signedIn" };
  }

  /** Reports the refusal of a request that finishes a sign-in or link. */
  async #refusing<Result>(request: Promise<Result>): Promise<Result> {
    try {
      return await request;
    } catch (error) {
      const { code, message, data } = error as Partial<AccountError>;
      throw code ? this.#refuse([code, message ?? "", data]) : error;
    }
  }

  /**
   * Calls the listener when a provider or the server refuses a sign-in or link, in any tab of this app. Returns a function that
   * removes the listener.
   */
  onRefusal(listener: (error: AccountError) => void): () => void {
    this.#onRefusal.add(listener);
    return () => this.#onRefusal.delete(listener);
  }

  /**
   * Reports a refused sign-in to all tabs and the opener of this window. Anyone can make a link that reports a refusal, so it is
   * only reported in this tab if no sign-in was started.
   */
  #refuse(refusal: Refusal): AccountError {
    if (this.#hasBegun) this.#tabs.announce(refusal);
    endPopup(refusal);
    return this.#refused(refusal);
  }

  #refused(refusal: Refusal): AccountError {
    const error = accountError(refusal);
    for (const listener of this.#onRefusal) listener(error);
    return error;
  }

  /** Ends the session locally, then on the server. Rejects if the server is unreachable; the server session then continues. */
  async signOut(): Promise<void> {
    const tokens = await this.#session.load();
    await this.#session.clear();
    this.#use();
    if (tokens !== null) await this.#call("signout", { refreshToken: tokens.refreshToken });
  }

  /**
   * Returns the signed-in account, or `null`; `ownAccount` is the same as a live query. This and all methods below throw
   * `FunctionError` with the server's code.
   */
  account<Profile = OwnAccount["profile"]>(): Promise<OwnAccount<Profile> | null> {
    return this.#connection.query(ownAccount) as Promise<OwnAccount<Profile> | null>;
  }

  /** Changes the display name; an empty string removes it. */
  async setName(name: string): Promise<void> {
    await this.#connection.mutation("_auth:setName", { name });
  }

  /** Sets a new password and ends all other sessions. Omit `currentPassword` if the account has none. */
  async changePassword(change: { currentPassword?: string; newPassword: string }): Promise<void> {
    await this.#connection.action("_auth:changePassword", change);
  }

  /** Mails a code and a link to a new address, which takes effect once `verifyEmail` has used one of them. */
  async changeEmail(change: EmailRequest & { readonly password?: string }): Promise<void> {
    await this.#connection.action("_auth:changeEmail", { ...change });
  }

  /** Returns the account's sessions, newest first; `ownSessions` is the same as a live query. */
  sessions(): Promise<OwnSession[]> {
    return this.#connection.query(ownSessions);
  }

  /** Ends a session of the account. */
  async signOutSession(sessionId: string): Promise<void> {
    // Not over the socket, which may close with the session before the response arrives.
    await this.#asSession.mutation("_auth:signOutSession", { sessionId });
  }

  /** Ends all sessions of the account, or all except this one. Returns their number. */
  async signOutEverywhere({ keepCurrent = false }: { readonly keepCurrent?: boolean } = {}): Promise<number> {
    const ended = await this.#asSession.mutation("_auth:signOutEverywhere", { keepCurrent });
    if (!keepCurrent) {
      await this.#session.clear();
      this.#use();
    }
    return ended as number;
  }

  /** Stops listening to other tabs. */
  close(): void {
    this.#tabs.close();
  }

  async #signedIn(answer: unknown): Promise<void> {
    const { accessToken, refreshToken, userId } = answer as Partial<Record<keyof Tokens, unknown>>;
    if (typeof accessToken !== "string" || typeof refreshToken !== "string") {
      throw new TypeError("Cannot sign in: the response contains no tokens");
    }
    await this.#session.save({ accessToken, refreshToken, ...typeof userId === "string" && { userId } });
    this.#use();
  }

  /** Makes the connection use the stored tokens. */
  #use(): void {
    this.#place.use(this.#holder, async (options) => {
      const token = await this.#session.fetchToken(options);
      this.#holder.userId = token === null ? null : (await this.#session.load())?.userId ?? null;
      return token;
    });
  }

  /** Handles a sign-in or sign-out in another tab; nothing changes if it is the same user. */
  async #changedElsewhere(): Promise<void> {
    const stored = await this.#session.load();
    const same = (stored === null) === (this.#connection.authState().status !== "signedIn") &&
      (stored?.userId ?? null) === this.#holder.userId;
    if (!same && this.#place.holder() === this.#holder) this.#use();
  }
}

/** Returns the address of this page without the fragment. */
function pageAddress(): string {
  const { location } = globalThis as { location?: Location };
  if (location === undefined) throw new TypeError("Cannot sign in with a provider outside a page");
  return location.href.replace(/#.*/, "");
}

function leaveFor(address: string): void {
  const { location } = globalThis as { location?: Location };
  if (location?.assign === undefined) throw new TypeError("Cannot sign in with a provider outside a page");
  location.assign(address);
}

/** Returns `localStorage` in a page, memory elsewhere. */
export function platformStorage(): TokenStorage {
  try {
    const { document, localStorage } = globalThis as { document?: unknown; localStorage?: TokenStorage };
    // Other platforms have one localStorage for all programs; tokens must not be stored there.
    if (document !== undefined && localStorage !== undefined) return localStorage;
  } catch {
    // Storage is blocked in this page.
  }
  const kept = new Map<string, string>();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}
