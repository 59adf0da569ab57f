/** Accounts as an app uses them: `client.auth` signs in and out and keeps the connection's token fresh. */
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
import { httpAddress } from "../connection/addresses.ts";
import type { AuthState, FetchToken } from "./auth.ts";
import type { Clock } from "../clock.ts";
import { FunctionError, reportUnhandled } from "../errors.ts";
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
  /** Where tokens are kept: the page's `localStorage` unless given, memory where there is none. */
  readonly storage?: TokenStorage;
  readonly fetch?: typeof fetch;
}

/** A link's token, or the email address and the code of the same email. */
export type EmailProof = { readonly token: string } | { readonly email: string; readonly code: string };

export interface EmailRequest {
  readonly email: string;
  /** Page the email's link leads to; it has to be on the server's list. */
  readonly redirectTo?: string;
}

/** Ways to sign in the server offers. */
export interface SignInWays {
  readonly password: boolean;
  readonly magicLink: boolean;
  readonly signups: boolean;
  /** Names of OAuth providers. */
  readonly oauth: readonly string[];
}

/** What the address of the page brought along. */
export type RedirectResult =
  | { readonly type: "none" }
  /** Back from an OAuth provider, or from a sign-in link that this browser asked for. */
  | { readonly type: "signedIn" }
  /**
   * From a sign-in link that this browser did not ask for. Anyone can send a link to an account of their own, so ask the
   * user before calling `signInWithMagic` with the token.
   */
  | { readonly type: "magicLink"; readonly token: string }
  /** Tokens of a sign-in that this browser did not begin. They are removed from the address and not used. */
  | { readonly type: "ignored" }
  /** Back from the provider of a further identity, which is the account's now. */
  | { readonly type: "linked"; readonly provider: string }
  | { readonly type: "emailVerified" }
  /** From a reset link: ask for a new password and call `resetPassword` with the token. */
  | { readonly type: "resetPassword"; readonly token: string };

/** The part of the page's history that is used; platforms without pages do not know its type. */
interface PageHistory {
  readonly state: unknown;
  replaceState(state: unknown, unused: string, address: string): void;
}

/** Whose tokens a connection uses: each who gives some has one of these. */
export interface TokenHolder {
  /** The user, when that is known: of the token given last. */
  userId: string | null;
}

/** Where the accounts put their tokens; the app may have put its own there. */
export interface TokenPlace {
  /** Whose tokens are in use; `null` until somebody has given any. */
  holder(): TokenHolder | null;
  use(holder: TokenHolder, fetchToken: FetchToken): void;
}

/** The connection the accounts sign in. */
export interface AccountConnection {
  authState(): AuthState;
  query<Result>(query: FunctionReference<"query", Record<string, never>, Result>): Promise<Result>;
  mutation(mutation: `_auth:${string}`, args: JsonObject): Promise<unknown>;
  action(action: `_auth:${string}`, args: JsonObject): Promise<unknown>;
}

export class Accounts {
  readonly #server: string | URL;
  readonly #call: CallAccounts;
  /** Calls as the stored session, whatever the connection is at. */
  readonly #asSession: SynclineHttpClient;
  readonly #session: AccountSession;
  readonly #connection: AccountConnection;
  readonly #tabs: Tabs;
  readonly #clock: Clock;
  readonly #place: TokenPlace;
  readonly #holder: TokenHolder = { userId: null };
  /** Whether the page's address had the result of a sign-in that this browser began. */
  #hasBegun = false;
  readonly #onRefusal = new Set<(error: AccountError) => void>();

  /** Signs the connection in with the tokens that are stored, unless it uses tokens of somebody else. */
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

  /** All methods below throw `AccountError` with the contract's code when the server refuses. */
  async signInWays(): Promise<SignInWays> {
    return await this.#call("providers", null) as SignInWays;
  }

  /** Creates an account and signs it in, unless its email address has to be verified first. */
  async signUp(
    account: { email: string; password: string; name?: string },
  ): Promise<{ verificationRequired: boolean }> {
    const answer = await this.#call("signup", account) as Partial<Tokens> & {
      verificationRequired?: boolean;
    };
    if (answer.verificationRequired) return { verificationRequired: true };
    await this.#signedIn(answer);
    return { verificationRequired: false };
  }

  async signIn(credentials: { email: string; password: string }): Promise<void> {
    await this.#signedIn(await this.#call("signin", credentials));
  }

  /** Sends a link and a code to sign in with. In this browser the link signs in at once, within an hour. */
  async requestMagicLink(request: EmailRequest): Promise<void> {
    const appState = beginFlow(this.#clock.now());
    await this.#call("magic/request", { ...request, ...appState !== null && { appState } });
  }

  async signInWithMagic(proof: EmailProof): Promise<void> {
    await this.#signedIn(await this.#call("magic/verify", proof));
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
    await this.#signedIn(await this.#call("reset/confirm", proof));
  }

  /**
   * Returns the address to send the page to for signing in with a provider; it comes back to `redirectTo`. In a page each
   * address is for one sign-in, which has to end within an hour: call it when the user leaves.
   */
  oauthAddress(provider: string, redirectTo: string): string {
    return this.#beginOAuth(provider, { redirect_to: redirectTo }).address;
  }

  #beginOAuth(
    provider: string,
    parameters: Readonly<Record<string, string>>,
  ): { readonly address: string; readonly state: string | null } {
    const address = new URL(httpAddress(this.#server, `api/auth/oauth/${encodeURIComponent(provider)}`));
    const state = beginFlow(this.#clock.now());
    const all = { ...parameters, ...state !== null && { app_state: state } };
    for (const [name, value] of Object.entries(all)) address.searchParams.set(name, value);
    return { address: address.href, state };
  }

  /** Leaves the page for a provider's, which comes back to `redirectTo`: this page unless given. */
  signInWithOAuth(provider: string, { redirectTo }: { readonly redirectTo?: string } = {}): void {
    leaveFor(this.oauthAddress(provider, redirectTo ?? pageAddress()));
  }

  /**
   * Signs in with a provider in a window of its own, which comes back to `redirectTo`: a page of this app that calls
   * `completeRedirect`. To be called right in the handler of a click.
   */
  async signInWithPopup(
    provider: string,
    { redirectTo }: { readonly redirectTo?: string } = {},
  ): Promise<void> {
    const begun = this.#beginOAuth(provider, { redirect_to: redirectTo ?? pageAddress() });
    try {
      await signInByPopup(begun.address, this.#clock);
    } finally {
      // Of a window that was closed early the state is still there.
      takeFlow(begun.state, this.#clock.now());
    }
    // The window has stored the tokens.
    this.#use();
  }

  /** Leaves the page for a provider's, to bring a further identity of whoever is signed in; see `completeRedirect`. */
  async linkIdentity(provider: string, { redirectTo }: { readonly redirectTo?: string } = {}): Promise<void> {
    const asked = { provider, redirectTo: redirectTo ?? pageAddress() };
    const { link } = await this.#asSession.action("_auth:startLink", asked) as { link: string };
    leaveFor(this.#beginOAuth(provider, { link }).address);
  }

  /** The identities the account has at providers; `ownIdentities` is the same as a live query. */
  identities(): Promise<OwnIdentity[]> {
    return this.#connection.query(ownIdentities);
  }

  /** Takes an identity away; fails with `last_way_in` when nothing else would let the user in. */
  async unlinkIdentity(identityId: string): Promise<void> {
    await this.#connection.action("_auth:unlinkIdentity", { identityId });
  }

  /**
   * Uses what an OAuth provider or an email's link put into the page's address, and takes it out of the address.
   * Call it once when a page starts. Tokens are taken only from a sign-in that this browser began with
   * `signInWithOAuth`, `signInWithPopup`, `oauthAddress` or `requestMagicLink`. Throws `AccountError` when a provider or
   * the server refused.
   */
  async completeRedirect(): Promise<RedirectResult> {
    const { location, history } = globalThis as { location?: Location; history?: PageHistory };
    if (location === undefined || history === undefined) return { type: "none" };
    const fields = new URLSearchParams(location.hash.slice(1));
    if (![...fields.keys()].some((name) => name.startsWith("svc_"))) return { type: "none" };
    // Tokens must not stay where they are copied along with the address.
    history.replaceState(history.state, "", location.pathname + location.search);
    this.#hasBegun = takeFlow(fields.get("svc_state"), this.#clock.now());
    const code = fields.get("svc_error");
    if (code !== null) throw this.#refuse([code, fields.get("svc_error_description") ?? ""]);
    const link = fields.get("svc_link_token");
    if (link !== null) return await this.#linked(link);
    const [reset, verify, magic] = ["reset", "verify", "magic"].map((name) =>
      fields.get(`svc_${name}_token`)
    );
    if (reset) return { type: "resetPassword", token: reset };
    if (verify) {
      await this.verifyEmail({ token: verify });
      return { type: "emailVerified" };
    }
    if (magic) {
      if (!this.#hasBegun) return { type: "magicLink", token: magic };
      await this.signInWithMagic({ token: magic });
    } else if (!this.#hasBegun) return { type: "ignored" };
    else {
      await this.#signedIn({
        accessToken: fields.get("svc_access_token") ?? undefined,
        refreshToken: fields.get("svc_refresh_token") ?? undefined,
        userId: fields.get("svc_user_id") ?? undefined,
      });
      endPopup(null);
    }
    return { type: "signedIn" };
  }

  /** Confirms as the stored session that it asked for what the page's address brought. */
  async #linked(token: string): Promise<RedirectResult> {
    try {
      const linked = await this.#asSession.action("_auth:linkIdentity", { token });
      return { type: "linked", ...linked as { provider: string } };
    } catch (error) {
      throw error instanceof FunctionError && error.code ? this.#refuse([error.code, error.message]) : error;
    }
  }

  /**
   * Calls the listener whenever a provider, or the server after it, has refused to sign in or to link, in whichever tab of
   * this app that was. Returns how to end that.
   */
  onRefusal(listener: (error: AccountError) => void): () => void {
    this.#onRefusal.add(listener);
    return () => this.#onRefusal.delete(listener);
  }

  /**
   * Tells all tabs, and the opener of this window, that a sign-in that ended here was refused. Anybody can make a link that
   * says so: where none had begun, it is told here only.
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

  /** Ends the session: here at once, then on the server. Rejects when that cannot be reached; then it goes on there. */
  async signOut(): Promise<void> {
    const tokens = await this.#session.load();
    await this.#session.clear();
    this.#use();
    if (tokens !== null) await this.#call("signout", { refreshToken: tokens.refreshToken });
  }

  /**
   * The account that is signed in, `null` for nobody; `ownAccount` is the same as a live query. This and all methods below
   * throw `FunctionError` with the server's code.
   */
  account<Profile = OwnAccount["profile"]>(): Promise<OwnAccount<Profile> | null> {
    return this.#connection.query(ownAccount) as Promise<OwnAccount<Profile> | null>;
  }

  /** Changes the display name; an empty one takes it away. */
  async setName(name: string): Promise<void> {
    await this.#connection.mutation("_auth:setName", { name });
  }

  /** Sets a new password and ends all other sessions. `currentPassword` is left out while there is none. */
  async changePassword(change: { currentPassword?: string; newPassword: string }): Promise<void> {
    await this.#connection.action("_auth:changePassword", change);
  }

  /** Sends a code and a link to a new address; it is the account's once `verifyEmail` has used one of them. */
  async changeEmail(change: EmailRequest & { readonly password?: string }): Promise<void> {
    await this.#connection.action("_auth:changeEmail", { ...change });
  }

  /** Where the account is signed in, the newest session first; `ownSessions` is the same as a live query. */
  sessions(): Promise<OwnSession[]> {
    return this.#connection.query(ownSessions);
  }

  /** Ends a session of the account. */
  async signOutSession(sessionId: string): Promise<void> {
    // Not over the socket, which a session takes down with it before the answer is there.
    await this.#asSession.mutation("_auth:signOutSession", { sessionId });
  }

  /** Ends all sessions of the account, or all but this one. Returns how many. */
  async signOutEverywhere({ keepCurrent = false }: { readonly keepCurrent?: boolean } = {}): Promise<number> {
    const ended = await this.#asSession.mutation("_auth:signOutEverywhere", { keepCurrent });
    if (!keepCurrent) {
      await this.#session.clear();
      this.#use();
    }
    return ended as number;
  }

  /** Ends listening to other tabs. */
  close(): void {
    this.#tabs.close();
  }

  async #signedIn(answer: unknown): Promise<void> {
    const { accessToken, refreshToken, userId } = answer as Partial<Record<keyof Tokens, unknown>>;
    if (typeof accessToken !== "string" || typeof refreshToken !== "string") {
      throw new TypeError("Cannot sign in: the answer has no tokens");
    }
    await this.#session.save({ accessToken, refreshToken, ...typeof userId === "string" && { userId } });
    this.#use();
  }

  /** Lets the connection use what is stored now. */
  #use(): void {
    this.#place.use(this.#holder, async (options) => {
      const token = await this.#session.fetchToken(options);
      this.#holder.userId = token === null ? null : (await this.#session.load())?.userId ?? null;
      return token;
    });
  }

  /** Another tab has signed in or out; of the same user it changes nothing here. */
  async #changedElsewhere(): Promise<void> {
    const stored = await this.#session.load();
    const same = (stored === null) === (this.#connection.authState().status !== "signedIn") &&
      (stored?.userId ?? null) === this.#holder.userId;
    if (!same && this.#place.holder() === this.#holder) this.#use();
  }
}

/** The address of this page, without its fragment. */
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

function platformStorage(): TokenStorage {
  try {
    const { document, localStorage } = globalThis as { document?: unknown; localStorage?: TokenStorage };
    // Other platforms have a localStorage too, for all programs at once: tokens do not belong there.
    if (document !== undefined && localStorage !== undefined) return localStorage;
  } catch {
    // A page whose storage is blocked.
  }
  const kept = new Map<string, string>();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}
