/** Authentication and connection state in components. */
import { computed, type ComputedRef } from "vue";
import type { Accounts } from "../accounts/accounts.ts";
import {
  accountsOf,
  authStore,
  connectionStore,
  pageClient,
  type SignedInView,
  signedInView,
} from "../bindings/state_stores.ts";
import type { ConnectionState } from "../client.ts";
import { useSyncline } from "./plugin.ts";
import { type RefsOf, refsOf, useStore } from "./use_store.ts";

/** The signed-in user as refs, and the methods to change it. */
export interface AuthRefs extends RefsOf<SignedInView> {
  /** `client.auth`: sign-up, sign-in, sign-out. Its methods throw during server rendering. */
  readonly auth: Accounts;
}

/**
 * Returns the signed-in user: with the app's own tokens if it calls `client.setAuth`, which it should do before the app is
 * mounted, otherwise with the server's accounts, whose tokens `client.auth` then manages.
 */
export function useAuth(): AuthRefs {
  const client = pageClient(useSyncline());
  const store = authStore(client);
  const state = useStore(() => store);
  return { ...refsOf(() => signedInView(state())), auth: accountsOf(client) };
}

/**
 * Returns the connection's state. `oldestCallAgeMs` is the age at the last change. To show it growing, read
 * `useSyncline().connectionState()` on a timer.
 */
export function useConnectionState(): ComputedRef<ConnectionState> {
  const store = connectionStore(useSyncline());
  return computed(useStore(() => store));
}
