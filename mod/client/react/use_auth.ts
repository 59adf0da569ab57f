/** Authentication state in components. */
import {
  createElement,
  Fragment,
  type ReactElement,
  type ReactNode,
  useMemo,
  useSyncExternalStore,
} from "react";
import type { Accounts } from "../accounts/accounts.ts";
import type { AuthState } from "../accounts/auth.ts";
import { present, useClient } from "./provider.ts";

/** The signed-in user, and the methods to change it. */
export interface AuthView {
  readonly status: AuthState["status"];
  /** The user's id with the server's own accounts; `null` for the app's own tokens, and when signed out. */
  readonly userId: string | null;
  /** Whether the state is not known yet. */
  readonly isLoading: boolean;
  readonly isAuthenticated: boolean;
  /** `client.auth`: sign-up, sign-in, sign-out. Throws during server rendering. */
  readonly auth: Accounts;
}

/** Lets components destructure `auth` during server rendering and use it later. */
const noAccounts = new Proxy({}, { get: () => present(null) }) as Accounts;

const loading: AuthState = { status: "loading" };

/**
 * Returns the signed-in user: with the app's own tokens if it calls `client.setAuth`, otherwise with the server's accounts, whose
 * tokens `client.auth` then manages. The same holds for the three components below. An app with its own tokens should call
 * `setAuth` before the first render; until then the server's accounts are used.
 */
export function useAuth(): AuthView {
  const client = useClient();
  const store = useMemo(() => ({
    subscribe: (listener: () => void) => client?.onAuthState(listener) ?? (() => {}),
    read: () => client?.authState() ?? loading,
  }), [client]);
  const state = useSyncExternalStore(store.subscribe, store.read, () => loading);
  return useMemo(() => ({
    status: state.status,
    userId: state.status === "signedIn" ? state.userId : null,
    isLoading: state.status === "loading",
    isAuthenticated: state.status === "signedIn",
    get auth() {
      return client?.auth ?? noAccounts;
    },
  }), [client, state]);
}

interface Gate {
  readonly children?: ReactNode;
}

/** Shows its children while a user is signed in. */
export function Authenticated({ children }: Gate): ReactElement | null {
  return useGate("signedIn", children);
}

/** Shows its children while no user is signed in. */
export function Unauthenticated({ children }: Gate): ReactElement | null {
  return useGate("signedOut", children);
}

/** Shows its children while the state is not known yet. */
export function AuthLoading({ children }: Gate): ReactElement | null {
  return useGate("loading", children);
}

function useGate(shownAt: AuthState["status"], children: ReactNode): ReactElement | null {
  return useAuth().status === shownAt ? createElement(Fragment, null, children) : null;
}
