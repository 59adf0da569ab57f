/** Which channel is open: the address of the page says so. */
import { useEffect, useSyncExternalStore } from "react";

function subscribe(listener: () => void): () => void {
  globalThis.addEventListener("hashchange", listener);
  return () => globalThis.removeEventListener("hashchange", listener);
}

function channelOfAddress(): string {
  try {
    const name = decodeURIComponent(location.hash.slice(1)).slice(0, 32);
    // Half a character at its end could not stand in an address again.
    return name.replace(/[\uD800-\uDBFF]$/, "") || "general";
  } catch {
    // An address that somebody wrote by hand.
    return "general";
  }
}

function openChannel(name: string): void {
  location.hash = encodeURIComponent(name);
}

/** The open channel, and what opens another one. */
export function useChannel(): [channel: string, openChannel: (name: string) => void] {
  const channel = useSyncExternalStore(subscribe, channelOfAddress);
  useEffect(() => {
    document.title = `#${channel} · Syncline chat`;
  }, [channel]);
  return [channel, openChannel];
}
