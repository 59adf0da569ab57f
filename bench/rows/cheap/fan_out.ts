/** One query and many sockets, beside a bare broadcast of the same bytes: ten commits per second, and the maximum rate. */
import { type BenchContext, benchFunctions } from "../../context.ts";
import { setRowMessage } from "../../load/messages.ts";
import { compare, comparisonRow } from "../../support/rounds.ts";
import { seedRows } from "../../support/seed.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";

const INTERVAL_MS = 100;

export async function fanOutRows(context: BenchContext): Promise<Row[]> {
  const paced: Row[] = [];
  const fast: Row[] = [];
  for (const sockets of [200, 1_000, 5_000]) {
    const rows = await fanOut(context, sockets);
    paced.push(rows[0]);
    fast.push(rows[1]);
  }
  return [...paced, ...fast];
}

async function fanOut(context: BenchContext, sockets: number): Promise<[Row, Row]> {
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
  let value = 0;
  let sample = "";
  const deliver = async (
    name: "ours" | "control",
    { commits, intervalMs }: { readonly commits: number; readonly intervalMs: number },
  ) => {
    const messages = Array.from(
      { length: commits },
      () => name === "control" ? sample : setRowMessage(7, ++value),
    );
    const startedAt = performance.now();
    const options = { name, messages, deliveries: sockets, intervalMs, marker: '"QueryUpdated"' };
    const result = await load.run("trigger", options);
    if (name === "ours") sample = result.sample;
    const seconds = (performance.now() - startedAt) / 1_000;
    return { p50Ms: median(result.lastDeliveryMs), perSecond: commits * sockets / seconds };
  };
  const compareDeliveries = (options: { readonly commits: number; readonly intervalMs: number }) =>
    compare(context, {
      ours: { pid: server.pid, work: () => deliver("ours", options) },
      control: { pid: control.pid, work: () => deliver("control", options) },
      operations: () => options.commits * sockets,
    });
  const paced = await compareDeliveries({ commits: context.full ? 20 : 12, intervalMs: INTERVAL_MS });
  const fast = await compareDeliveries({
    commits: Math.ceil((context.full ? 100_000 : 40_000) / sockets),
    intervalMs: 0,
  });
  const size = `${sockets.toLocaleString("en")} sockets`;
  return [
    comparisonRow(`fan-out, 10 commits/s, ${size}: p50`, paced, {
      ...{ value: ({ p50Ms }) => p50Ms, unit: "ms", target: { atMost: 1.3 } },
    }),
    comparisonRow(`deliveries at the maximum rate, ${size}`, fast, {
      ...{ value: ({ perSecond }) => perSecond, unit: "/s", digits: 0, target: { atLeast: 0.85 } },
    }),
  ];
}
