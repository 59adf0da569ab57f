/** Creation of 20,000 different subscriptions, beside a bare read and send of each. */
import { type BenchContext, benchFunctions, type Control } from "../../context.ts";
import { costOf, treeMemory } from "../../support/cost.ts";
import { comparisonRow, roundsOf, type Sample } from "../../support/rounds.ts";
import { seedRows } from "../../support/seed.ts";
import { pause } from "../../../tests/support/waiting.ts";
import type { Row } from "../../table.ts";

const SUBSCRIPTIONS = 20_000;
const PER_SOCKET = 1_000;
const CHARS = 20;
/** Time for the runtime to collect garbage. */
const SETTLE_MS = 3_000;

interface Created {
  readonly ms: number;
  readonly addedMB: number;
}

export async function subscriptionRows(context: BenchContext): Promise<Row[]> {
  const comparison = { ours: [] as Sample<Created>[], control: [] as Sample<Created>[] };
  for (let round = 0; round < roundsOf(context); round++) {
    // New processes for each round, because a process reuses memory that it has released.
    await using inner = context.inner();
    const server = await inner.server(benchFunctions);
    await seedRows(server, { count: SUBSCRIPTIONS, chars: CHARS });
    comparison.ours.push(await createSubscriptions(inner, server));
    const control = await inner.control("live_server", [SUBSCRIPTIONS, CHARS]);
    comparison.control.push(await createSubscriptions(inner, control));
  }
  const name = `creating ${SUBSCRIPTIONS.toLocaleString("en")} subscriptions`;
  return [
    comparisonRow(name, comparison, {
      ...{ value: ({ ms }) => ms, unit: "ms", digits: 0, targetOf: "ours", target: { atMost: 450 } },
    }),
    comparisonRow(`${name}: memory`, comparison, {
      ...{ value: ({ addedMB }) => addedMB, unit: "MB", digits: 0, targetOf: "ours", target: { atMost: 80 } },
    }),
  ];
}

async function createSubscriptions(context: BenchContext, { pid, port }: Control): Promise<Sample<Created>> {
  const load = context.load();
  await pause(SETTLE_MS);
  const before = await treeMemory(pid);
  const { result: ms, cost } = await costOf(pid, {
    work: () =>
      load.run("openSubscribers", {
        ...{ name: "all", port, sockets: SUBSCRIPTIONS / PER_SOCKET },
        subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket: PER_SOCKET },
      }),
    operations: () => SUBSCRIPTIONS,
  });
  await pause(SETTLE_MS);
  return { result: { ms, addedMB: ((await treeMemory(pid)).bytes - before.bytes) / 1e6 }, cost };
}
