/** Communication between tabs of one app, and a lock across tabs. */
import type { Refusal } from "./account_calls.ts";

export interface Tabs {
  /** Announces that the stored tokens changed, or that a sign-in was refused. */
  announce(refusal?: Refusal): void;
  /** Runs `work` while holding a lock across tabs; where that is not supported, within this page. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Stops listening. */
  close(): void;
}

interface Channel {
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  postMessage(message: Refusal | null): void;
  close(): void;
}

interface Platform {
  readonly document?: unknown;
  readonly navigator?: {
    readonly locks?: { request<Result>(name: string, work: () => Promise<Result>): Promise<Result> };
  };
  readonly BroadcastChannel?: new (name: string) => Channel;
  addEventListener?(type: "storage", listener: (event: { readonly key: string | null }) => void): void;
}

/** Returns the tabs that share a name (the storage key). `onAnnounced` is called with announcements of other tabs. */
export function connectTabs(name: string, onAnnounced: (refusal: Refusal | null) => void): Tabs {
  const platform = globalThis as unknown as Platform;
  const { document, navigator, BroadcastChannel } = platform;
  // Outside pages there are no tabs, and an open channel would keep a program running.
  let channel = document !== undefined && BroadcastChannel !== undefined ? new BroadcastChannel(name) : null;
  // Tabs with another client version announce changed tokens in their own format.
  if (channel !== null) {
    channel.onmessage = ({ data }) => onAnnounced(Array.isArray(data) ? data as unknown as Refusal : null);
    // Values stored by another browser process may become visible only after its message.
    platform.addEventListener?.("storage", ({ key }) => key === name && channel && onAnnounced(null));
  }
  const locks = document === undefined ? undefined : navigator?.locks;
  let last: Promise<unknown> = Promise.resolve();
  return {
    announce: (refusal = undefined) => channel?.postMessage(refusal ?? null),
    alone(work) {
      if (locks !== undefined) return locks.request(name, work);
      const turn = last.then(work, work);
      last = turn.catch(() => {});
      return turn;
    },
    close() {
      channel?.close();
      channel = null;
    },
  };
}
