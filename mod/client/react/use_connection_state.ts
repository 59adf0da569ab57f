/** The state of the connection in a component. */
import { useMemo, useSyncExternalStore } from "react";
import type { ConnectionState, SynclineClient } from "../client.ts";
import { useClient } from "./provider.ts";
import type { Store } from "./query_store.ts";

/** What a server's page says, and the browser's page until it is hydrated. */
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
 * The connection's state; the component renders again when it changes. `oldestCallAgeMs` is the age at the last change:
 * a component that shows it as it grows reads `useSyncline().connectionState()` with a timer of its own.
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

/** Ages differ at each look; they count when the call they belong to came or went. */
function isSame(a: ConnectionState, b: ConnectionState): boolean {
  return (Object.keys(b) as (keyof ConnectionState)[]).every((key) =>
    key === "oldestCallAgeMs" ? (a[key] === null) === (b[key] === null) : Object.is(a[key], b[key])
  );
}
