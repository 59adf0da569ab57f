/** Commits that touch one of many distinct subscriptions: their time must not grow with the number of subscriptions. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const FEW = 200;
const MANY = 20_000;
const PER_SOCKET = 1000;
const FILL_COUNT = 4000;

export async function subscriptionRows(context: BenchContext): Promise<Row[]> {
  const rounds = context.full ? 20 : 6;
  const commits = 100;
  const load = context.load();
  const sizes = [FEW, MANY];
  for (const size of sizes) {
    const server = await context.server(benchFunctions);
    for (let start = 0; start < MANY; start += FILL_COUNT) {
      await server.call("mutation", "rows:fill", { start, count: FILL_COUNT, chars: 20 });
    }
    const perSocket = Math.min(size, PER_SOCKET);
    await load.run("openAudience", {
      name: String(size),
      port: server.port,
      path: "/api/sync",
      triggerPath: "/api/sync",
      sockets: size / perSocket,
      subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket },
    });
  }
  const delivered: Record<number, number[]> = { [FEW]: [], [MANY]: [] };
  for (let round = -1; round < rounds; round++) {
    for (const size of sizes) {
      const messages = Array.from({ length: commits }, (_, i) => {
        const number = (i * 7919) % FEW;
        const value = (round + 1) * commits + i + 1;
        return `{"type":"Mutation","requestId":{id},"udfPath":"rows:set","args":{"number":${number},"value":${value}}}`;
      });
      const result = await load.run("triggerAudience", {
        name: String(size),
        messages,
        deliveries: 1,
        marker: '"QueryUpdated"',
        intervalMs: 1,
      });
      if (round >= 0) delivered[size]?.push(median(result.lastDeliveryMs));
    }
  }
  const few = median(delivered[FEW] ?? []);
  const many = median(delivered[MANY] ?? []);
  return [{
    name: `commit that touches one of ${MANY} subscriptions, to its delivery`,
    measured: `${many.toFixed(2)} ms`,
    control: `${few.toFixed(2)} ms at ${FEW}`,
    ratio: many / few,
    target: { atMost: 1.3 },
    details: { delivered },
  }];
}
