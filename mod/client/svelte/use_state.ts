/** Authentication and connection state in components. */
import type { AuthView } from "../bindings/state_stores.ts";
import { authView, connectionView } from "../bindings/views.ts";
import type { ConnectionState } from "../client.ts";
import { useSyncline } from "./provider.ts";
import { useStore } from "./use_store.ts";

/**
 * Returns the signed-in user: with the app's own tokens if it calls `client.setAuth`, which it should do before the app is
 * mounted, otherwise with the server's accounts, whose tokens `client.auth` then manages. Do not destructure the state; `auth`
 * does not change.
 */
export function useAuth(): AuthView {
  return authView(useSyncline(), useStore);
}

/**
 * Returns the connection's state, which must not be destructured. `oldestCallAgeMs` is the age at the last change. To show it
 * growing, read `useSyncline().connectionState()` on a timer.
 */
export function useConnectionState(): ConnectionState {
  return connectionView(useSyncline(), useStore);
}
