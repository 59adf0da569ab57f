/** A client that subscribes to a list, and a socket that changes one document of the list at a time. */
import { SynclineClient } from "../../mod/client/mod.ts";
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { pause } from "../../tests/support/waiting.ts";
import { mutationMessage, subscribeMessage } from "./messages.ts";

export interface LiveListOptions {
  readonly port: number;
  /** Documents of the list. */
  readonly count: number;
  readonly changes: number;
  /** Time between a callback and the next change. */
  readonly pauseMs: number;
  /** Whether the server is the control. Its messages are parsed here instead of by the client. */
  readonly bare: boolean;
}

interface Listed {
  readonly number: number;
  readonly value: number;
}

/** Calls back with each new state of the list. Returns a function that ends the subscription. */
type Subscribe = (
  options: LiveListOptions,
  onList: (list: readonly Listed[]) => void,
) => Promise<() => unknown>;

const CHANGE_MS_MAX = 30_000;

/** Returns the milliseconds from sending each change to its callback. */
export async function liveList(options: LiveListOptions): Promise<number[]> {
  const { port, count, changes, pauseMs, bare } = options;
  const times: number[] = [];
  let [expected, changed] = [-1, 0];
  let received = Promise.withResolvers<number>();
  const first = Promise.withResolvers<void>();
  const unsubscribe = await (bare ? subscribeToControl : subscribeClient)(options, (list) => {
    if (list.length !== count) return;
    first.resolve();
    if (list[changed]?.value === expected) received.resolve(performance.now());
  });
  await using socket = await RawWebSocket.connect({
    ...{ port, path: "/api/sync" },
    onText: (text) => {
      if (text.includes('"success":false')) received.reject(new Error(text));
    },
  });
  await first.promise;
  // Values differ from those of earlier rounds.
  const firstValue = Math.floor(Date.now() / 1_000) * 1_000;
  for (let change = 0; change < changes; change++) {
    await pause(pauseMs);
    [expected, changed] = [firstValue + change, (change * 7_919) % count];
    received = Promise.withResolvers();
    const timer = setTimeout(() => received.reject(new Error("A change did not arrive")), CHANGE_MS_MAX);
    const sentAt = performance.now();
    const args = `{"number":${changed},"value":${expected}}`;
    socket.send(mutationMessage({ udfPath: "rows:set", args }, change));
    times.push(await received.promise - sentAt);
    clearTimeout(timer);
  }
  await unsubscribe();
  return times;
}

const subscribeClient: Subscribe = ({ port, count }, onList) => {
  const client = new SynclineClient(`http://127.0.0.1:${port}`);
  client.subscribe("rows:list", { start: 0, count }, (list) => onList(list as readonly Listed[]));
  return Promise.resolve(() => client.close());
};

const subscribeToControl: Subscribe = async ({ port, count }, onList) => {
  let list: Listed[] = [];
  const socket = await RawWebSocket.connect({
    ...{ port, path: "/api/sync" },
    onText: (text) => {
      const [change] = JSON.parse(text).changes;
      if (change.value !== undefined) {
        list = change.value;
      } else {
        list = list.slice();
        for (const [index, document] of change.diff) list[index] = document;
      }
      onList(list);
    },
  });
  socket.send(subscribeMessage([{ udfPath: "rows:list", args: `{"start":0,"count":${count}}` }]));
  return () => socket.close();
};
