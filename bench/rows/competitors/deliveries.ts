/** A change of one document, delivered to all its subscribers. */
import assert from "node:assert/strict";
import type { BenchContext } from "../../context.ts";
import type { TriggerResult } from "../../load/deliveries.ts";
import { percentile } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { type Figure, inRoundRobin, rowOf } from "../cheap/turns.ts";
import { startPair } from "./pair.ts";
import { rowId, ROWS_PATH } from "./pocketbase.ts";

const SUBSCRIBERS = 200;
const NUMBER = 7;
const INTERVAL_MS = 100;

export async function deliveryRows(outer: BenchContext, program: string): Promise<Row[]> {
  await using context = outer.inner();
  const { syncline, pocketBase } = await startPair(context, { program, rows: 20 });
  const load = context.load();
  await load.run("openAudience", {
    ...{ name: "syncline", port: syncline.port, path: "/api/sync", triggerPath: "/api/sync" },
    sockets: SUBSCRIBERS,
    subscribe: { udfPath: "rows:get", args: `{"number":${NUMBER}}`, perSocket: 1 },
  });
  const record = rowId(NUMBER);
  await load.run("openEventAudience", {
    ...{ name: "pocketBase", port: pocketBase.port, triggerPath: `${ROWS_PATH}/${record}` },
    topics: Array.from({ length: SUBSCRIBERS }, () => `rows/${record}`),
  });
  let value = 0;
  const change = (to: number) => ({
    syncline:
      `{"type":"Mutation","requestId":{id},"udfPath":"rows:set","args":{"number":${NUMBER},"value":${to}}}`,
    pocketBase: `{"value":${to}}`,
  });
  const markers = { syncline: '"QueryUpdated"', pocketBase: '"action":"update"' };
  const changes = context.full ? 60 : 20;
  const side = (name: keyof typeof markers, { pid }: { readonly pid: number }) => ({
    pid,
    work: async () => {
      const messages = Array.from({ length: changes }, () => change(++value)[name]);
      const options = { name, messages, deliveries: SUBSCRIBERS, intervalMs: INTERVAL_MS };
      const result = await load.run("triggerAudience", { ...options, marker: markers[name] });
      assert.ok(result.sample.includes(`"value":${value}`), result.sample);
      return result;
    },
  });
  const turns = await inRoundRobin(context, {
    ours: side("syncline", syncline),
    control: side("pocketBase", pocketBase),
    count: ({ lastDeliveryMs }) => lastDeliveryMs.length * SUBSCRIBERS,
  });
  const share = (p: number): Figure<TriggerResult> => ({
    value: ({ lastDeliveryMs }) => percentile(lastDeliveryMs, p),
    ...{ unit: "ms", digits: 2, target: null },
  });
  return [
    rowOf(
      `a change each ${INTERVAL_MS} ms to ${SUBSCRIBERS} subscribers, until the last: p50`,
      turns,
      share(0.5),
    ),
    rowOf("the same: p95", turns, share(0.95)),
  ];
}
