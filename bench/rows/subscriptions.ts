/** Commits that affect one of many distinct subscriptions. Their delay must not grow with the number of subscriptions. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { setRowMessage } from "../load/messages.ts";
import { alternate } from "../support/rounds.ts";
import { seedRows } from "../support/seed.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const FEW = 200;
const MANY = 20_000;
const PER_SOCKET = 1000;
const COMMITS = 100;

export async function subscriptionRows(context: BenchContext): Promise<Row[]> {
  const load = context.load();
  for (const size of [FEW, MANY]) {
    const server = await context.server(benchFunctions);
    await seedRows(server, { count: MANY, chars: 20 });
    const perSocket = Math.min(size, PER_SOCKET);
    await load.run("openSubscribers", {
      ...{ name: String(size), port: server.port, sockets: size / perSocket },
      subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket },
    });
  }
  let value = 0;
  const deliver = async (size: number) => {
    const messages = Array.from({ length: COMMITS }, (_, i) => setRowMessage((i * 7919) % FEW, ++value));
    const options = { messages, deliveries: 1, marker: '"QueryUpdated"', intervalMs: 1 };
    return median((await load.run("trigger", { name: String(size), ...options })).lastDeliveryMs);
  };
  const delivered = await alternate(context.full ? 20 : 6, {
    few: () => deliver(FEW),
    many: () => deliver(MANY),
  });
  const [few, many] = [median(delivered.few), median(delivered.many)];
  return [{
    name: `commit that affects one of ${MANY} subscriptions, to its delivery`,
    measured: `${many.toFixed(2)} ms`,
    control: `${few.toFixed(2)} ms at ${FEW}`,
    ratio: many / few,
    target: { atMost: 1.3 },
    details: { delivered },
  }];
}
