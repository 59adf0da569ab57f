/** The badge that says how the connection is. */
import { useEffect, useState } from "react";
import type { ConnectionState } from "syncline/client";
import { useConnectionState, useSyncline } from "syncline/react";

/** Messages without an answer for this long are shown as being sent. */
const SLOW_MS = 2_000;

export function Connection() {
  const client = useSyncline();
  const state = useConnectionState();
  const isSlow = useIsSlow(state.inflightMutations > 0);
  const { label, phase } = describe(state, isSlow);
  return (
    <div className="connection" role="status">
      <span className="connection-text" data-phase={phase}>{label}</span>
      {state.phase === "waiting" && state.retries >= 2 &&
        <button type="button" onClick={() => client.reconnectNow()}>Try now</button>}
    </div>
  );
}

/** Whether the oldest call has waited longer than `SLOW_MS`. Polled every second, because no event reports it. */
function useIsSlow(isBusy: boolean): boolean {
  const client = useSyncline();
  const [isSlow, setIsSlow] = useState(false);
  useEffect(() => {
    if (!isBusy) return setIsSlow(false);
    const look = () => setIsSlow((client.connectionState().oldestCallAgeMs ?? 0) > SLOW_MS);
    const timer = setInterval(look, 1_000);
    return () => clearInterval(timer);
  }, [client, isBusy]);
  return isSlow;
}

function describe(state: ConnectionState, isSlow: boolean): { label: string; phase: string } {
  if (state.isConnected) {
    return isSlow ? { label: "Sending…", phase: "busy" } : { label: "Live", phase: "live" };
  }
  if (!state.hasEverConnected && state.retries === 0) return { label: "Connecting…", phase: "connecting" };
  const waiting = state.inflightMutations;
  const unsent = waiting === 0 ? "" : waiting === 1 ? " · 1 message waits" : ` · ${waiting} messages wait`;
  return { label: `Offline, reconnecting${unsent}`, phase: "offline" };
}
