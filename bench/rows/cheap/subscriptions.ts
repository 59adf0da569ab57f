/** 20,000 different subscriptions made, beside a bare read and send of each. */
import { type BenchContext, benchFunctions, type Control, pause } from "../../context.ts";
import { treeMemory } from "../../support/cost.ts";
import type { Row } from "../../table.ts";
import { costOf } from "../../support/cost.ts";
import { roundsOf, rowOf, type Sample } from "./turns.ts";

const SUBSCRIPTIONS = 20_000;
const PER_SOCKET = 1_000;
const FILL_COUNT = 4_000;
const CHARS = 20;
/** Time for the garbage of a round to be collected. */
const SETTLE_MS = 3_000;

interface Made {
  readonly ms: number;
  readonly megabytes: number;
}

export async function subscriptionRows(context: BenchContext): Promise<Row[]> {
  const turns = { ours: [] as Sample<Made>[], control: [] as Sample<Made>[] };
  for (let round = 0; round < roundsOf(context); round++) {
    // New processes for each: memory that was released once is not requested again.
    await using inner = context.inner();
    const server = await inner.server(benchFunctions);
    for (let start = 0; start < SUBSCRIPTIONS; start += FILL_COUNT) {
      await server.call("mutation", "rows:fill", { start, count: FILL_COUNT, chars: CHARS });
    }
    turns.ours.push(await made(inner, server));
    turns.control.push(
      await made(inner, await inner.controlProcess("live_server", [String(SUBSCRIPTIONS), String(CHARS)])),
    );
  }
  return [
    rowOf(`${SUBSCRIPTIONS} subscriptions made`, turns, {
      ...{ value: ({ ms }) => ms, unit: "ms", digits: 0, of: "ours", target: { atMost: 450 } },
    }),
    rowOf(`${SUBSCRIPTIONS} subscriptions: memory more`, turns, {
      ...{ value: ({ megabytes }) => megabytes, unit: "MB", digits: 0, of: "ours", target: { atMost: 80 } },
    }),
  ];
}

async function made(context: BenchContext, { pid, port }: Control): Promise<Sample<Made>> {
  const load = context.load();
  await pause(SETTLE_MS);
  const before = await treeMemory(pid);
  const { result: ms, cost } = await costOf(pid, {
    work: () =>
      load.run("openAudience", {
        ...{ name: "a", port, path: "/api/sync", triggerPath: "/api/sync" },
        sockets: SUBSCRIPTIONS / PER_SOCKET,
        subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket: PER_SOCKET },
      }),
    count: () => SUBSCRIPTIONS,
  });
  await pause(SETTLE_MS);
  return { result: { ms, megabytes: (await treeMemory(pid) - before) / 1e6 }, cost };
}
