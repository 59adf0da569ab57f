/** Authentication and connection state as stores. */
import type { Accounts } from "../accounts/accounts.ts";
import type { AuthState } from "../accounts/auth.ts";
import type { ConnectionState, SynclineClient } from "../client.ts";
import { present } from "./calls.ts";
import type { Store } from "./query_store.ts";

/** State during server rendering and hydration. */
export const loadingAuth: AuthState = Object.freeze({ status: "loading" });

/** Returns the store of a client's authentication state; without a client it stays `loading`. */
export function authStore(client: SynclineClient | null): Store<AuthState> {
  return {
    subscribe: (listener) => client?.onAuthState(listener) ?? (() => {}),
    read: () => client?.authState() ?? loadingAuth,
  };
}

/** Lets components destructure `auth` during server rendering and use it later. */
const noAccounts = new Proxy({}, { get: () => present(null) }) as Accounts;

/** Returns `client.auth`; during server rendering, an object whose methods throw. */
export function accountsOf(client: SynclineClient | null): Accounts {
  return client?.auth ?? noAccounts;
}

/** Returns the client in a page, `null` elsewhere: rendering on a server must not read stored tokens or sign in. */
export function pageClient(client: SynclineClient): SynclineClient | null {
  return "document" in globalThis ? client : null;
}

/** The signed-in user. */
export interface SignedInView {
  readonly status: AuthState["status"];
  /** The user's id with the server's own accounts; `null` for the app's own tokens, and when signed out. */
  readonly userId: string | null;
  /** Whether the state is not known yet. */
  readonly isLoading: boolean;
  readonly isAuthenticated: boolean;
}

/** The signed-in user, and the methods to change it. */
export interface AuthView extends SignedInView {
  /** `client.auth`: sign-up, sign-in, sign-out. Its methods throw during server rendering. */
  readonly auth: Accounts;
}

/** Returns the authentication state as components show it. */
export function signedInView(state: AuthState): SignedInView {
  const { status } = state;
  return {
    status,
    userId: status === "signedIn" ? state.userId : null,
    isLoading: status === "loading",
    isAuthenticated: status === "signedIn",
  };
}

/** Returns the store of a client's connection state, whose value is another object after each change. */
export function connectionStore(client: SynclineClient): Store<ConnectionState> {
  return {
    subscribe: (listener) => client.onConnectionState(listener),
    read: () => client.connectionState(),
  };
}
