/** Connection state in components. */
import { useMemo, useSyncExternalStore } from "react";
import type { ConnectionState, SynclineClient } from "../client.ts";
import { useClient } from "./provider.ts";
import type { Store } from "./query_store.ts";

/** State during server rendering and hydration. */
const unconnected: ConnectionState = Object.freeze({
  phase: "idle",
  transport: null,
  isConnected: false,
  hasEverConnected: false,
  connectionCount: 0,
  retries: 0,
  reconnectsAt: null,
  inflightMutations: 0,
  inflightActions: 0,
  oldestCallAgeMs: null,
  lastCloseReason: null,
});

/**
 * Returns the connection's state and re-renders when it changes. `oldestCallAgeMs` is the age at the last change. To show it
 * growing, read `useSyncline().connectionState()` on a timer.
 */
export function useConnectionState(): ConnectionState {
  const client = useClient();
  const store = useMemo(() => connectionStore(client), [client]);
  return useSyncExternalStore(store.subscribe, store.read, () => unconnected);
}

function connectionStore(client: SynclineClient | null): Store<ConnectionState> {
  if (client === null) return { subscribe: () => () => {}, read: () => unconnected };
  let state = client.connectionState();
  const read = () => {
    const now = client.connectionState();
    if (!isSame(state, now)) state = now;
    return state;
  };
  return { subscribe: (listener) => client.onConnectionState(listener), read };
}

/** Ignores the ages, which differ at each call; a change of the oldest call counts. */
function isSame(a: ConnectionState, b: ConnectionState): boolean {
  return (Object.keys(b) as (keyof ConnectionState)[]).every((key) =>
    key === "oldestCallAgeMs" ? (a[key] === null) === (b[key] === null) : Object.is(a[key], b[key])
  );
}
