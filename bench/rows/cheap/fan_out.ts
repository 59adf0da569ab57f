/** One query and many sockets, beside a bare broadcast of the same bytes: ten commits a second, and as fast as they go. */
import { type BenchContext, benchFunctions } from "../../context.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { inRoundRobin, rowOf } from "./turns.ts";

const PACED_MS = 100;
const MARKER = '"QueryUpdated"';

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
  const control = await inner.controlProcess("websocket_server");
  const load = inner.load();
  await server.call("mutation", "rows:fill", { start: 0, count: 20, chars: 50 });
  await load.run("openAudience", {
    ...{ name: "ours", port: server.port, sockets, path: "/api/sync", triggerPath: "/api/sync" },
    subscribe: { udfPath: "rows:list", args: '{"start":0,"count":20}', perSocket: 1 },
  });
  await load.run("openAudience", {
    ...{ name: "control", port: control.port, sockets, path: "/listen", triggerPath: "/trigger" },
    subscribe: null,
  });
  let value = 0;
  let sample = "";
  const deliver = async (
    name: "ours" | "control",
    { commits, intervalMs }: { commits: number; intervalMs: number },
  ) => {
    const messages = Array.from({ length: commits }, () => name === "control" ? sample : setting(++value));
    const startedAt = performance.now();
    const options = { name, messages, deliveries: sockets, intervalMs, marker: MARKER };
    const result = await load.run("triggerAudience", options);
    if (name === "ours") sample = result.sample;
    const seconds = (performance.now() - startedAt) / 1_000;
    return { p50Ms: median(result.lastDeliveryMs), perSecond: commits * sockets / seconds };
  };
  const turns = (options: { readonly commits: number; readonly intervalMs: number }) =>
    inRoundRobin(context, {
      ours: { pid: server.pid, work: () => deliver("ours", options) },
      control: { pid: control.pid, work: () => deliver("control", options) },
      count: () => options.commits * sockets,
    });
  const paced = await turns({ commits: context.full ? 20 : 12, intervalMs: PACED_MS });
  const commits = Math.ceil((context.full ? 100_000 : 40_000) / sockets);
  const fast = await turns({ commits, intervalMs: 0 });
  return [
    rowOf(`fan-out at 10 commits/s to ${sockets} sockets: p50 of the last delivery`, paced, {
      ...{ value: ({ p50Ms }) => p50Ms, unit: "ms", target: { atMost: 1.3 } },
    }),
    rowOf(`deliveries as fast as they go, ${sockets} sockets`, fast, {
      ...{ value: ({ perSecond }) => perSecond, unit: "/s", digits: 0, target: { atLeast: 0.85 } },
    }),
  ];
}

function setting(value: number): string {
  return `{"type":"Mutation","requestId":{id},"udfPath":"rows:set","args":{"number":7,"value":${value}}}`;
}
