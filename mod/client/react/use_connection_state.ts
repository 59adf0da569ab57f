/** Connection state in components. */
import { useMemo, useSyncExternalStore } from "react";
import type { Store } from "../bindings/query_store.ts";
import type { ConnectionState, SynclineClient } from "../client.ts";
import { useClient } from "./provider.ts";

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
  inflightQueries: 0,
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
  let state = unconnected;
  let key = "";
  const read = () => {
    const now = client?.connectionState() ?? unconnected;
    const nowKey = JSON.stringify(now, withoutAge);
    if (nowKey !== key) [state, key] = [now, nowKey];
    return state;
  };
  return { subscribe: (listener) => client?.onConnectionState(listener) ?? (() => {}), read };
}

/** Ignores the age of the oldest call, which differs each time, but not whether there is a call. */
function withoutAge(name: string, value: unknown): unknown {
  return name === "oldestCallAgeMs" ? value === null : value;
}
