/** What tabs of one app tell one another, and how one at a time does what only one may do. */

export interface Tabs {
  /** Tells the other tabs that the stored tokens changed. */
  announce(): void;
  /** Runs `work` while no other tab does; where tabs cannot be told apart, while nobody on this page does. */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Ends listening. */
  close(): void;
}

interface Channel {
  onmessage: (() => void) | null;
  postMessage(message: string): void;
  close(): void;
}

interface Platform {
  readonly document?: unknown;
  readonly navigator?: {
    readonly locks?: { request<Result>(name: string, work: () => Promise<Result>): Promise<Result> };
  };
  readonly BroadcastChannel?: new (name: string) => Channel;
}

/** The tabs that share a name; `onAnnounced` is called when another one announces. */
export function connectTabs(name: string, onAnnounced: () => void): Tabs {
  const { document, navigator, BroadcastChannel } = globalThis as unknown as Platform;
  // Outside pages there are no tabs, and an open channel would keep a program from ending.
  const channel = document !== undefined && BroadcastChannel !== undefined
    ? new BroadcastChannel(name)
    : null;
  if (channel !== null) channel.onmessage = onAnnounced;
  const locks = document === undefined ? undefined : navigator?.locks;
  let last: Promise<unknown> = Promise.resolve();
  return {
    announce: () => channel?.postMessage("changed"),
    alone(work) {
      if (locks !== undefined) return locks.request(name, work);
      const turn = last.then(work, work);
      last = turn.catch(() => {});
      return turn;
    },
    close: () => channel?.close(),
  };
}
