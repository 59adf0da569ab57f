/** A list held live by one client while one of its documents changes at a time: from the change to the client's callback. */
import { SynclineClient } from "../../mod/client/mod.ts";
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";

export interface LiveListOptions {
  readonly port: number;
  /** Documents of the list. */
  readonly count: number;
  readonly changes: number;
  /** From one callback to the next change. */
  readonly pauseMs: number;
  /** Whether the server is a control, whose messages are read plainly; else the client reads them. */
  readonly bare: boolean;
}

/** Calls `onList` with the list as it is now, again and again. Returns what ends it. */
type Hold = (
  options: LiveListOptions,
  onList: (list: readonly Held[]) => void,
) => Promise<() => Promise<void>>;

interface Held {
  readonly number: number;
  readonly value: number;
}

const LATE_MS = 30_000;

/** Milliseconds from when each change was sent to the callback with it. */
export async function liveList(options: LiveListOptions): Promise<number[]> {
  const times: number[] = [];
  let [expected, changed] = [-1, 0];
  let shown = Promise.withResolvers<number>();
  const first = Promise.withResolvers<void>();
  const end = await (options.bare ? holdBare : holdByClient)(options, (list) => {
    if (list.length !== options.count) return;
    first.resolve();
    if (list[changed]?.value === expected) shown.resolve(performance.now());
  });
  await using socket = await RawWebSocket.connect({
    ...{ port: options.port, path: "/api/sync" },
    onText: (text) => {
      if (text.includes('"success":false')) shown.reject(new Error(text));
    },
  });
  await first.promise;
  const since = Math.floor(Date.now() / 1_000) * 1_000;
  for (let change = 0; change < options.changes; change++) {
    await new Promise((resolve) => setTimeout(resolve, options.pauseMs));
    [expected, changed] = [since + change, (change * 7_919) % options.count];
    shown = Promise.withResolvers();
    const timer = setTimeout(() => shown.reject(new Error("A change was not seen")), LATE_MS);
    const sentAt = performance.now();
    const args = `{"number":${changed},"value":${expected}}`;
    socket.send(`{"type":"Mutation","requestId":${change},"udfPath":"rows:set","args":${args}}`);
    times.push(await shown.promise - sentAt);
    clearTimeout(timer);
  }
  await end();
  return times;
}

const holdByClient: Hold = ({ port, count }, onList) => {
  const client = new SynclineClient(`http://127.0.0.1:${port}`);
  client.subscribe("rows:list", { start: 0, count }, (list) => onList(list as readonly Held[]));
  return Promise.resolve(() => Promise.resolve(client.close()));
};

const holdBare: Hold = async ({ port, count }, onList) => {
  let list: Held[] = [];
  const socket = await RawWebSocket.connect({
    ...{ port, path: "/api/sync" },
    onText: (text) => {
      const [change] = JSON.parse(text).changes;
      if (change.value !== undefined) {
        list = change.value;
      } else {
        list = list.slice();
        for (const [at, document] of change.diff) list[at] = document;
      }
      onList(list);
    },
  });
  const query = `{"type":"Add","queryId":0,"udfPath":"rows:list","args":{"start":0,"count":${count}}}`;
  socket.send(`{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[${query}]}`);
  return () => socket.close();
};
