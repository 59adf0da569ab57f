/** One query, many sockets, ten commits per second: from commit to last delivery, beside a broadcast of the same bytes. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { setRowMessage } from "../load/messages.ts";
import { alternate } from "../support/rounds.ts";
import { seedRows } from "../support/seed.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const INTERVAL_MS = 100;

export async function fanOutRows(context: BenchContext): Promise<Row[]> {
  return [await fanOut(context, 1000), await fanOut(context, 5000)];
}

async function fanOut(context: BenchContext, sockets: number): Promise<Row> {
  const commits = context.full ? 50 : 15;
  await using inner = context.inner();
  const server = await inner.server(benchFunctions);
  const control = await inner.control("websocket_server");
  const load = inner.load();
  await seedRows(server, { count: 20, chars: 50 });
  await load.run("openSubscribers", {
    ...{ name: "ours", port: server.port, sockets },
    subscribe: { udfPath: "rows:list", args: '{"start":0,"count":20}', perSocket: 1 },
  });
  await load.run("openSubscribers", {
    ...{ name: "control", port: control.port, sockets, path: "/listen", triggerPath: "/trigger" },
    subscribe: null,
  });
  const options = { deliveries: sockets, intervalMs: INTERVAL_MS, marker: '"QueryUpdated"' };
  let value = 0;
  let sample = "";
  const times = await alternate(context.full ? 8 : 4, {
    ours: async () => {
      const messages = Array.from({ length: commits }, () => setRowMessage(7, ++value));
      const result = await load.run("trigger", { name: "ours", messages, ...options });
      sample = result.sample;
      return result.lastDeliveryMs;
    },
    control: async () => {
      const messages = Array<string>(commits).fill(sample);
      return (await load.run("trigger", { name: "control", messages, ...options })).lastDeliveryMs;
    },
  });
  const p95 = (rounds: number[][]) => median(rounds.map((values) => percentile(values, 0.95)));
  return {
    name: `fan-out to ${sockets} sockets, p95 of the last delivery`,
    measured: `${p95(times.ours).toFixed(1)} ms`,
    control: `${p95(times.control).toFixed(1)} ms bare broadcast`,
    ratio: p95(times.ours) / p95(times.control),
    target: { atMost: 2 },
    details: { p50Ms: median(times.ours.flat()), controlP50Ms: median(times.control.flat()) },
  };
}
