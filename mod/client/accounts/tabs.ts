/** What tabs of one app tell one another, and how one at a time does what only one may do. */
import type { Refusal } from "./account_calls.ts";

export interface Tabs {
  /** Tells the other tabs that the stored tokens changed, or, with a refusal, that signing in was refused. */
  announce(refusal?: Refusal): void;
  /** Runs `work` while no other tab does; where tabs cannot be told apart, while nobody on this page does. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Ends listening. */
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

/** The tabs that share a name, that of what they store; `onAnnounced` is called with what another one announces. */
export function connectTabs(name: string, onAnnounced: (refusal: Refusal | null) => void): Tabs {
  const platform = globalThis as unknown as Platform;
  const { document, navigator, BroadcastChannel } = platform;
  // Outside pages there are no tabs, and an open channel would keep a program from ending.
  let channel = document !== undefined && BroadcastChannel !== undefined ? new BroadcastChannel(name) : null;
  // A tab with another version of the client says it in its own words when the tokens changed.
  if (channel !== null) {
    channel.onmessage = ({ data }) => onAnnounced(Array.isArray(data) ? data as unknown as Refusal : null);
    // What another process of the browser stored may be seen here only after what it said.
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
