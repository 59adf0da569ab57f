/** Live delivery of a change in a long list: from the change to the callback, beside a bare read, diff and send. */
import { type BenchContext, benchFunctions } from "../../context.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { inRoundRobin, rowOf } from "./turns.ts";

const CHARS = 150;
const FILL_COUNT = 2_000;
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
  const control = await inner.controlProcess("live_server", [String(count), String(CHARS)]);
  const load = inner.load();
  for (let start = 0; start < count; start += FILL_COUNT) {
    const portion = { start, count: Math.min(FILL_COUNT, count - start), chars: CHARS };
    await server.call("mutation", "rows:fill", portion);
  }
  const changes = context.full ? 40 : 20;
  const options = { count, changes, pauseMs: PAUSE_MS };
  const turns = await inRoundRobin(inner, {
    ours: {
      pid: server.pid,
      work: () => load.run("liveList", { ...options, port: server.port, bare: false }),
    },
    control: {
      pid: control.pid,
      work: () => load.run("liveList", { ...options, port: control.port, bare: true }),
    },
    count: () => changes,
  });
  return rowOf(`a live list of ${count} documents, one changes: p50 to the callback, two cores`, turns, {
    ...{ value: median, unit: "ms", of: "ours", target: { atMost: target } },
  });
}
