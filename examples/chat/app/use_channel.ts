/** Which channel is open: the address of the page says so. */
import { useEffect, useSyncExternalStore } from "react";

function subscribe(listener: () => void): () => void {
  globalThis.addEventListener("hashchange", listener);
  return () => globalThis.removeEventListener("hashchange", listener);
}

function channelOfAddress(): string {
  try {
    const name = decodeURIComponent(location.hash.slice(1)).slice(0, 32);
    // A lone surrogate at the end cannot be encoded in a URL.
    return name.replace(/[\uD800-\uDBFF]$/, "") || "general";
  } catch {
    // The address was typed by hand.
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
