/** Sockets that stop reading: their memory, and the delay of deliveries to other sockets. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { setRowMessage, subscribeMessage } from "../load/messages.ts";
import { memoryOf } from "../../tests/support/processes/process_tree.ts";
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { seedRows } from "../support/seed.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const READING = 200;
const STALLED = 20;
const ROWS = 20;
const COMMITS = 300;
const MIB = 1_048_576;
const query = { udfPath: "rows:list", args: `{"start":0,"count":${ROWS}}` };

export async function stalledRows(context: BenchContext): Promise<Row[]> {
  const rounds = context.full ? 8 : 4;
  const server = await context.server(benchFunctions);
  const load = context.load();
  await seedRows(server, { count: ROWS, chars: 1000 });
  await load.run("openSubscribers", {
    ...{ name: "reading", port: server.port, sockets: READING },
    subscribe: { ...query, perSocket: 1 },
  });
  let value = 0;
  const deliverP99 = async () => {
    const messages = Array.from({ length: COMMITS }, () => setRowMessage(7, ++value));
    const options = { messages, deliveries: READING, marker: '"QueryUpdated"', intervalMs: 5 };
    const { lastDeliveryMs } = await load.run("trigger", { name: "reading", ...options });
    return percentile(lastDeliveryMs, 0.99);
  };
  await deliverP99();
  const alone: number[] = [];
  const besideStalled: number[] = [];
  for (let round = 0; round < rounds; round++) {
    alone.push(await deliverP99());
    await using _stalled = await openStalled(server.port);
    besideStalled.push(await deliverP99());
  }
  const before = (await memoryOf(server.pid)).proportional;
  await using sockets = new AsyncDisposableStack();
  for (let i = 0; i < STALLED; i++) sockets.use(await openStalled(server.port));
  await deliverP99();
  const perSocket = ((await memoryOf(server.pid)).proportional - before) / STALLED / MIB;
  return [
    {
      name: "a socket that stops reading, p99 of the others' deliveries",
      measured: `${median(besideStalled).toFixed(1)} ms`,
      control: `${median(alone).toFixed(1)} ms without it`,
      ratio: median(besideStalled) / median(alone),
      target: { atMost: 1.1 },
      details: { besideStalled, alone },
    },
    {
      name: `a socket that stops reading through ${COMMITS} results of ${ROWS} kB, memory of main`,
      measured: `${perSocket.toFixed(2)} MiB`,
      control: "1 MiB",
      ratio: perSocket,
      target: { atMost: 1 },
      details: { stalled: STALLED },
    },
  ];
}

/** Opens a socket that subscribes and stops reading after its first result. */
async function openStalled(port: number): Promise<RawWebSocket> {
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
  socket.send(subscribeMessage([query]));
  await first.promise;
  return socket;
}
