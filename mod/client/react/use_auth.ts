/** Who is signed in, in components. */
import {
  createElement,
  Fragment,
  type ReactElement,
  type ReactNode,
  useMemo,
  useSyncExternalStore,
} from "react";
import type { Accounts, AuthState } from "../accounts.ts";
import { present, useClient } from "./provider.ts";

/** Who is signed in with the server's own accounts, and the calls that change it. */
export interface AuthView {
  readonly status: AuthState["status"];
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
 * Who is signed in. Using it lets `client.auth` keep the connection's token: an app that signs in with tokens of its own
 * (`client.setAuth`) leaves it and the three components below alone.
 */
export function useAuth(): AuthView {
  const client = useClient();
  const store = useMemo(() => ({
    subscribe: (listener: () => void) => client?.auth.onState(listener) ?? (() => {}),
    read: () => client?.auth.state ?? loading,
  }), [client]);
  const state = useSyncExternalStore(store.subscribe, store.read, () => loading);
  return useMemo(() => ({
    status: state.status,
    userId: state.status === "signedIn" ? state.userId : null,
    isLoading: state.status === "loading",
    isAuthenticated: state.status === "signedIn",
    auth: client?.auth ?? noAccounts,
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
