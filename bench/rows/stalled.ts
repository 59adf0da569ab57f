/** Sockets that stop reading beside others that read: what they cost in memory, and what the others notice. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { proportionalSetSize } from "../../tests/support/processes/process_tree.ts";
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const READING = 200;
const STALLED = 20;
const ROWS = 20;
const COMMITS = 300;
const MiB = 1_048_576;
const query = { udfPath: "rows:list", args: `{"start":0,"count":${ROWS}}` };

export async function stalledRows(context: BenchContext): Promise<Row[]> {
  const rounds = context.full ? 8 : 4;
  await using inner = context.inner();
  const server = await inner.server(benchFunctions);
  const load = inner.load();
  await server.call("mutation", "rows:fill", { start: 0, count: ROWS, chars: 1000 });
  await load.run("openAudience", {
    name: "reading",
    port: server.port,
    path: "/api/sync",
    triggerPath: "/api/sync",
    sockets: READING,
    subscribe: { ...query, perSocket: 1 },
  });
  let value = 0;
  const measure = async () => {
    const messages = Array.from(
      { length: COMMITS },
      () =>
        `{"type":"Mutation","requestId":{id},"udfPath":"rows:set","args":{"number":7,"value":${++value}}}`,
    );
    const options = { messages, deliveries: READING, marker: '"QueryUpdated"', intervalMs: 5 };
    const { lastDeliveryMs } = await load.run("triggerAudience", { name: "reading", ...options });
    return percentile(lastDeliveryMs, 0.99);
  };
  await measure();
  const alone: number[] = [];
  const beside: number[] = [];
  for (let round = 0; round < rounds; round++) {
    alone.push(await measure());
    await using _stalled = await stalledSocket(server.port);
    beside.push(await measure());
  }
  const before = await proportionalSetSize(server.pid);
  await using sockets = new AsyncDisposableStack();
  for (let i = 0; i < STALLED; i++) sockets.use(await stalledSocket(server.port));
  await measure();
  const each = (await proportionalSetSize(server.pid) - before) / STALLED / MiB;
  return [
    {
      name: "a socket that stops reading, p99 of the others' deliveries",
      measured: `${median(beside).toFixed(1)} ms`,
      control: `${median(alone).toFixed(1)} ms without it`,
      ratio: median(beside) / median(alone),
      target: { atMost: 1.1 },
      details: { beside, alone },
    },
    {
      name: `a socket that stops reading through ${COMMITS} results of ${ROWS} kB, memory of main`,
      measured: `${each.toFixed(2)} MiB`,
      control: "1 MiB",
      ratio: each,
      target: { atMost: 1 },
      details: { stalled: STALLED },
    },
  ];
}

/** A socket that subscribes, and reads nothing from its first result on. */
async function stalledSocket(port: number): Promise<RawWebSocket> {
  const first = Promise.withResolvers<void>();
  const socket = await RawWebSocket.connect({
    port,
    path: "/api/sync",
    onText: () => {
      socket.pause();
      first.resolve();
    },
    onClose: () => first.resolve(),
  });
  const add = `{"type":"Add","queryId":0,"udfPath":"${query.udfPath}","args":${query.args}}`;
  socket.send(`{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[${add}]}`);
  await first.promise;
  return socket;
}
