/** A client over sockets in memory, with a frozen clock. */
import { SynclineClient } from "../../../mod/client/mod.ts";
import type { Transition } from "../../../mod/protocol/server_messages.ts";
import type { StateVersion } from "../../../mod/protocol/state_version.ts";
import { FakeClock, settle } from "./fake_clock.ts";
import { type FakeSocket, FakeSockets } from "./fake_socket.ts";

export interface TestClient extends Disposable {
  readonly client: SynclineClient;
  readonly clock: FakeClock;
  readonly sockets: FakeSockets;
  /** Opens the newest socket and lets the client greet. */
  open(): Promise<FakeSocket>;
}

/** Polls only when `fetch` is given, and then over it. */
export function makeTestClient({ fetch }: { readonly fetch?: typeof globalThis.fetch } = {}): TestClient {
  const clock = new FakeClock();
  const sockets = new FakeSockets();
  const client = new SynclineClient("http://server.test/base?x#y", {
    webSocket: sockets.factory,
    clock,
    random: () => 0.5,
    polling: fetch !== undefined,
    ...fetch && { fetch },
  });
  const open = async () => {
    const socket = sockets.last;
    socket.open();
    await settle();
    return socket;
  };
  return { client, clock, sockets, open, [Symbol.dispose]: () => client.close() };
}

/** A version as `[querySet, identity, ts]`. */
export type Version = readonly [querySet: number, identity: number, ts: number];

/** A Transition. */
export function transition(
  [start, end]: readonly [Version, Version],
  modifications: Transition["modifications"] = [],
): Transition {
  return {
    type: "Transition",
    startVersion: stateVersion(start),
    endVersion: stateVersion(end),
    modifications,
  };
}

function stateVersion([querySet, identity, ts]: Version): StateVersion {
  return { querySet, identity, ts };
}

/** A full result. */
export function updated(queryId: number, value: unknown): Transition["modifications"][number] {
  return { type: "QueryUpdated", queryId, value, logLines: [] };
}

/** A result as a diff. */
export function patched(queryId: number, diff: unknown): Transition["modifications"][number] {
  return { type: "QueryUpdated", queryId, diff, logLines: [] };
}

/** Returns the state of a promise after everything that can settle has settled. */
export async function stateOf(promise: Promise<unknown>): Promise<"pending" | "resolved" | "rejected"> {
  let state: "pending" | "resolved" | "rejected" = "pending";
  promise.then(() => state = "resolved", () => state = "rejected");
  await settle();
  return state;
}
