/** The badge that says how the connection is. */

/** Shows the client's connection in `text`, with the button `retry` while there is a wait before the next attempt. */
export function showConnection(client, { text, retry }) {
  let ticking;

  const update = () => {
    clearTimeout(ticking);
    const state = client.connectionState();
    const { label, phase } = describe(state);
    text.dataset.phase = phase;
    // Written only when it differs: screen readers announce each change.
    if (text.textContent !== label) text.textContent = label;
    retry.hidden = state.phase !== "waiting" || state.retries < 2;
    // Slow answers show after a while, which no event announces.
    if (state.inflightMutations > 0) ticking = setTimeout(update, 1000);
  };

  client.onConnectionState(update);
  retry.addEventListener("click", () => client.reconnectNow());
  update();
}

function describe(state) {
  const waiting = state.inflightMutations;
  const unsent = waiting === 0 ? "" : waiting === 1 ? " · 1 message waits" : ` · ${waiting} messages wait`;
  if (state.isConnected) {
    return waiting > 0 && state.oldestCallAgeMs > 2000
      ? { label: "Sending…", phase: "busy" }
      : { label: "Live", phase: "live" };
  }
  if (!state.hasEverConnected && state.retries === 0) return { label: "Connecting…", phase: "connecting" };
  return { label: `Offline, reconnecting${unsent}`, phase: "offline" };
}
