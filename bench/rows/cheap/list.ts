/** Delivery of a change in a long list, from the change to the client's callback, beside a bare read, diff and send. */
import { type BenchContext, benchFunctions } from "../../context.ts";
import { compare, comparisonRow } from "../../support/rounds.ts";
import { seedRows } from "../../support/seed.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";

const CHARS = 150;
const PAUSE_MS = 20;

/** Server and client share all processors. */
export async function listRows(context: BenchContext): Promise<Row[]> {
  return [
    await list(context, { count: 1_000, target: 6 }),
    await list(context, { count: 10_000, target: 25 }),
  ];
}

async function list(
  context: BenchContext,
  { count, target }: { readonly count: number; readonly target: number },
): Promise<Row> {
  await using inner = context.unpinned();
  const server = await inner.server(benchFunctions);
  const control = await inner.control("live_server", [count, CHARS]);
  const load = inner.load();
  await seedRows(server, { count, chars: CHARS });
  const changes = context.full ? 40 : 20;
  const options = { count, changes, pauseMs: PAUSE_MS };
  const comparison = await compare(inner, {
    ours: {
      pid: server.pid,
      work: () => load.run("liveList", { ...options, port: server.port, bare: false }),
    },
    control: {
      pid: control.pid,
      work: () => load.run("liveList", { ...options, port: control.port, bare: true }),
    },
    operations: () => changes,
  });
  return comparisonRow(
    `live list of ${count.toLocaleString("en")}, one change (two cores)`,
    comparison,
    { value: median, unit: "ms", targetOf: "ours", target: { atMost: target } },
  );
}
