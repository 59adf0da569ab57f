/** Commits that touch a quick and a slow query: sockets that show the quick one alone must not wait for the slow one. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const SOCKETS = 14;
const COMMITS = 20;
const INTERVAL_MS = 10;

export async function slowQueryRows(context: BenchContext): Promise<Row[]> {
  const rounds = context.full ? 20 : 6;
  const load = context.load();
  const names = ["alone", "beside a slow query"] as const;
  for (const name of names) {
    const server = await context.server(benchFunctions);
    await server.call("mutation", "rows:fill", { start: 0, count: 1, chars: 20 });
    const audience = { port: server.port, path: "/api/sync", triggerPath: "/api/sync" };
    const args = '{"number":0}';
    await load.run("openAudience", {
      ...audience,
      name,
      sockets: SOCKETS,
      subscribe: { udfPath: "rows:get", args, perSocket: 1 },
    });
    if (name === "alone") continue;
    await load.run("openAudience", {
      ...audience,
      name: "slow",
      sockets: 1,
      subscribe: { udfPath: "rows:getSlowly", args, perSocket: 1 },
    });
  }
  const delivered: Record<string, number[]> = {};
  for (let round = -1; round < rounds; round++) {
    for (const name of names) {
      const messages = Array.from({ length: COMMITS }, (_, i) => {
        const value = (round + 1) * COMMITS + i + 1;
        return `{"type":"Mutation","requestId":{id},"udfPath":"rows:set","args":{"number":0,"value":${value}}}`;
      });
      const result = await load.run("triggerAudience", {
        name,
        messages,
        deliveries: SOCKETS,
        marker: '"QueryUpdated"',
        intervalMs: INTERVAL_MS,
      });
      if (round >= 0) (delivered[name] ??= []).push(median(result.lastDeliveryMs));
    }
  }
  const [alone, beside] = names.map((name) => median(delivered[name] ?? []));
  if (alone === undefined || beside === undefined) throw new Error("A series is missing");
  return [{
    name: "quick query beside a slow one, commit to last delivery",
    measured: `${beside.toFixed(2)} ms`,
    control: `${alone.toFixed(2)} ms alone`,
    ratio: beside / alone,
    // The slow query keeps a processor busy, so some of it is felt.
    target: { atMost: 4 },
    details: { delivered },
  }];
}
