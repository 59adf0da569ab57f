/** Authentication state in components. */
import {
  createElement,
  Fragment,
  type ReactElement,
  type ReactNode,
  useMemo,
  useSyncExternalStore,
} from "react";
import type { AuthState } from "../accounts/auth.ts";
import { accountsOf, authStore, type AuthView, loadingAuth, signedInView } from "../bindings/state_stores.ts";
import { useClient } from "./provider.ts";

/**
 * Returns the signed-in user: with the app's own tokens if it calls `client.setAuth`, otherwise with the server's accounts, whose
 * tokens `client.auth` then manages. The same holds for the three components below. An app with its own tokens should call
 * `setAuth` before the first render; until then the server's accounts are used.
 */
export function useAuth(): AuthView {
  const client = useClient();
  const store = useMemo(() => authStore(client), [client]);
  const state = useSyncExternalStore(store.subscribe, store.read, () => loadingAuth);
  return useMemo(() => ({
    ...signedInView(state),
    get auth() {
      return accountsOf(client);
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
