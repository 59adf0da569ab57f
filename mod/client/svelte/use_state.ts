/** Authentication and connection state in components. */
import {
  accountsOf,
  authStore,
  type AuthView,
  connectionStore,
  pageClient,
  signedInView,
} from "../bindings/state_stores.ts";
import { gettersOf } from "../bindings/views.ts";
import type { ConnectionState } from "../client.ts";
import { useSyncline } from "./provider.ts";
import { useStore } from "./use_store.ts";

/**
 * Returns the signed-in user: with the app's own tokens if it calls `client.setAuth`, which it should do before the app is
 * mounted, otherwise with the server's accounts, whose tokens `client.auth` then manages. Do not destructure the state; `auth`
 * does not change.
 */
export function useAuth(): AuthView {
  const client = pageClient(useSyncline());
  const store = authStore(client);
  const state = useStore(() => store);
  return Object.assign(gettersOf(() => signedInView(state())), { auth: accountsOf(client) });
}

/**
 * Returns the connection's state, which must not be destructured. `oldestCallAgeMs` is the age at the last change. To show it
 * growing, read `useSyncline().connectionState()` on a timer.
 */
export function useConnectionState(): ConnectionState {
  const store = connectionStore(useSyncline());
  return gettersOf(useStore(() => store));
}
