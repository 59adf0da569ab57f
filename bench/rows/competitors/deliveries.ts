/** Delivery of a change of one document to all its subscribers. */
import assert from "node:assert/strict";
import type { BenchContext } from "../../context.ts";
import { setRowMessage } from "../../load/messages.ts";
import { compare, comparisonRow } from "../../support/rounds.ts";
import { percentile } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { startPair } from "./pair.ts";
import { rowId, ROWS_PATH } from "./pocketbase.ts";

const SUBSCRIBERS = 200;
const NUMBER = 7;
const INTERVAL_MS = 100;

export async function deliveryRows(outer: BenchContext, program: string): Promise<Row[]> {
  await using context = outer.inner();
  const { syncline, pocketBase } = await startPair(context, { program, rows: 20 });
  const load = context.load();
  await load.run("openSubscribers", {
    ...{ name: "syncline", port: syncline.port, sockets: SUBSCRIBERS },
    subscribe: { udfPath: "rows:get", args: `{"number":${NUMBER}}`, perSocket: 1 },
  });
  const record = rowId(NUMBER);
  await load.run("openEventSubscribers", {
    ...{ name: "pocketBase", port: pocketBase.port, triggerPath: `${ROWS_PATH}/${record}` },
    topics: Array.from({ length: SUBSCRIBERS }, () => `rows/${record}`),
  });
  let value = 0;
  const changeTo = {
    syncline: (value: number) => setRowMessage(NUMBER, value),
    pocketBase: (value: number) => `{"value":${value}}`,
  };
  const markers = { syncline: '"QueryUpdated"', pocketBase: '"action":"update"' };
  const changes = context.full ? 60 : 20;
  const side = (name: keyof typeof markers, { pid }: { readonly pid: number }) => ({
    pid,
    work: async () => {
      const messages = Array.from({ length: changes }, () => changeTo[name](++value));
      const options = { name, messages, deliveries: SUBSCRIBERS, intervalMs: INTERVAL_MS };
      const result = await load.run("trigger", { ...options, marker: markers[name] });
      assert.ok(result.sample.includes(`"value":${value}`), result.sample);
      return result;
    },
  });
  const comparison = await compare(context, {
    ours: side("syncline", syncline),
    control: side("pocketBase", pocketBase),
    operations: ({ lastDeliveryMs }) => lastDeliveryMs.length * SUBSCRIBERS,
  });
  const row = (name: string, p: number) =>
    comparisonRow(name, comparison, {
      value: ({ lastDeliveryMs }) => percentile(lastDeliveryMs, p),
      ...{ unit: "ms", digits: 2, target: null },
    });
  return [
    row(`a change each ${INTERVAL_MS} ms to ${SUBSCRIBERS} subscribers, until the last: p50`, 0.5),
    row("the same: p95", 0.95),
  ];
}
