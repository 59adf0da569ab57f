/** Reconnects when the app is in front again, and pauses the connection while it stays in the background. */
import type { SynclineClient } from "../client.ts";

/** The part of React Native's `AppState` that is used. */
export interface AppStateLike {
  addEventListener(type: "change", listener: (state: string) => void): { remove(): void };
}

/**
 * Reconnects a client as soon as the app becomes active, instead of after its next timer. In the background it pauses the connection
 * after `pauseAfterMs` (default: 30 s) and when no call or one-shot query is in flight. Returns a function that stops this.
 *
 * @example
 * ```ts
 * import { AppState } from "react-native";
 *
 * followAppState(client, AppState);
 * ```
 */
export function followAppState(
  client: Pick<SynclineClient, "connectionState" | "pause" | "reconnectNow">,
  appState: AppStateLike,
  { pauseAfterMs = 30_000 }: { readonly pauseAfterMs?: number } = {},
): () => void {
  let timer: ReturnType<typeof setInterval> | undefined;
  const pauseIfUnused = () => {
    const { phase, inflightMutations, inflightActions, inflightQueries } = client.connectionState();
    // A call may have ended an earlier pause.
    if (phase !== "idle" && inflightMutations + inflightActions + inflightQueries === 0) client.pause();
  };
  const subscription = appState.addEventListener("change", (state) => {
    // On iOS, the app switcher and incoming calls make the app `inactive`.
    if (state === "inactive") return;
    clearInterval(timer);
    if (state === "active") client.reconnectNow();
    else timer = setInterval(pauseIfUnused, pauseAfterMs);
  });
  return () => {
    clearInterval(timer);
    subscription.remove();
  };
}
