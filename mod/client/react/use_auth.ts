/** Who is signed in, in components. */
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

/** Who is signed in, and the calls that change it. */
export interface AuthView {
  readonly status: AuthState["status"];
  /** The user's id with the server's own accounts; `null` for tokens of the app's own, and while nobody is signed in. */
  readonly userId: string | null;
  /** Whether it is not known yet who is signed in. */
  readonly isLoading: boolean;
  readonly isAuthenticated: boolean;
  /** Sign-up, sign-in, sign-out: `client.auth`. Whatever is taken from it while a server renders throws. */
  readonly auth: Accounts;
}

/** Components take `auth` while a server renders, and use it later. */
const noAccounts = new Proxy({}, { get: () => present(null) }) as Accounts;

const loading: AuthState = { status: "loading" };

/**
 * Who is signed in: with tokens of the app's own where it calls `client.setAuth`, else with the server's accounts, for
 * which `client.auth` then keeps the connection's token. The same holds for the three components below. An app with
 * tokens of its own calls `setAuth` before the first render, or the accounts have their turn until it does.
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

/** Shows its children while somebody is signed in. */
export function Authenticated({ children }: Gate): ReactElement | null {
  return useGate("signedIn", children);
}

/** Shows its children while nobody is signed in. */
export function Unauthenticated({ children }: Gate): ReactElement | null {
  return useGate("signedOut", children);
}

/** Shows its children while it is not known who is signed in. */
export function AuthLoading({ children }: Gate): ReactElement | null {
  return useGate("loading", children);
}

function useGate(shownAt: AuthState["status"], children: ReactNode): ReactElement | null {
  return useAuth().status === shownAt ? createElement(Fragment, null, children) : null;
}
