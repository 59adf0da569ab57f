/** One query, many sockets, ten commits a second: from commit to the last delivery, beside a bare broadcast of the same bytes. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const INTERVAL_MS = 100;

async function fanOut(context: BenchContext, sockets: number): Promise<Row> {
  const rounds = context.full ? 8 : 4;
  const commits = context.full ? 50 : 15;
  await using inner = context.inner();
  const server = await inner.server(benchFunctions);
  const controlPort = await inner.control("websocket_server");
  const load = inner.load();
  await server.call("mutation", "rows:fill", { start: 0, count: 20, chars: 50 });
  await load.run("openAudience", {
    name: "server",
    port: server.port,
    path: "/api/sync",
    triggerPath: "/api/sync",
    sockets,
    subscribe: { udfPath: "rows:list", args: '{"start":0,"count":20}', perSocket: 1 },
  });
  await load.run("openAudience", {
    name: "control",
    port: controlPort,
    path: "/listen",
    triggerPath: "/trigger",
    sockets,
    subscribe: null,
  });
  const options = { deliveries: sockets, intervalMs: INTERVAL_MS, marker: '"QueryUpdated"' };
  const served: number[][] = [];
  const broadcast: number[][] = [];
  for (let round = -1; round < rounds; round++) {
    const messages = Array.from(
      { length: commits },
      (_, i) =>
        `{"type":"Mutation","requestId":{id},"udfPath":"rows:set","args":{"number":7,"value":${
          (round + 1) * commits + i + 1
        }}}`,
    );
    const measured = await load.run("triggerAudience", { name: "server", messages, ...options });
    const control = await load.run("triggerAudience", {
      name: "control",
      messages: messages.map(() => measured.sample),
      ...options,
    });
    if (round < 0) continue;
    served.push(measured.lastDeliveryMs);
    broadcast.push(control.lastDeliveryMs);
  }
  const p95 = (series: number[][]) => median(series.map((values) => percentile(values, 0.95)));
  return {
    name: `fan-out to ${sockets} sockets, p95 of the last delivery`,
    measured: `${p95(served).toFixed(1)} ms`,
    control: `${p95(broadcast).toFixed(1)} ms bare broadcast`,
    ratio: p95(served) / p95(broadcast),
    target: { atMost: 2 },
    details: { p50Ms: median(served.flat()), controlP50Ms: median(broadcast.flat()) },
  };
}

export async function fanOutRows(context: BenchContext): Promise<Row[]> {
  return [await fanOut(context, 1000), await fanOut(context, 5000)];
}
