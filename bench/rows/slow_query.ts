/** Commits that affect a fast and a slow query. Sockets that subscribe only to the fast query must not wait for the slow one. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { setRowMessage } from "../load/messages.ts";
import { alternate } from "../support/rounds.ts";
import { seedRows } from "../support/seed.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const SOCKETS = 14;
const COMMITS = 20;
const INTERVAL_MS = 10;

export async function slowQueryRows(context: BenchContext): Promise<Row[]> {
  const load = context.load();
  for (const name of ["alone", "besideSlow"] as const) {
    const server = await context.server(benchFunctions);
    await seedRows(server, { count: 1, chars: 20 });
    const { port } = server;
    const subscribe = (udfPath: string) => ({ udfPath, args: '{"number":0}', perSocket: 1 });
    await load.run("openSubscribers", { name, port, sockets: SOCKETS, subscribe: subscribe("rows:get") });
    if (name === "alone") continue;
    const slow = subscribe("rows:getSlowly");
    await load.run("openSubscribers", { name: "slow", port, sockets: 1, subscribe: slow });
  }
  let value = 0;
  const deliver = async (name: string) => {
    const messages = Array.from({ length: COMMITS }, () => setRowMessage(0, ++value));
    const options = { messages, deliveries: SOCKETS, marker: '"QueryUpdated"', intervalMs: INTERVAL_MS };
    return median((await load.run("trigger", { name, ...options })).lastDeliveryMs);
  };
  const delivered = await alternate(context.full ? 20 : 6, {
    alone: () => deliver("alone"),
    besideSlow: () => deliver("besideSlow"),
  });
  const [alone, besideSlow] = [median(delivered.alone), median(delivered.besideSlow)];
  return [{
    name: "quick query beside a slow one, commit to last delivery",
    measured: `${besideSlow.toFixed(2)} ms`,
    control: `${alone.toFixed(2)} ms alone`,
    ratio: besideSlow / alone,
    // The slow query keeps a processor busy.
    target: { atMost: 4 },
    details: { delivered },
  }];
}
