/** From the command to listening, on a folder with 500 MB of documents. */
import { type BenchContext, benchFunctions } from "../../context.ts";
import { treeTimeUs } from "../../support/cost.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { roundsOf } from "./turns.ts";

const MEGABYTES = 500;
const CHARS = 10_000;
const FILL_COUNT = 500;

export async function startRows(context: BenchContext): Promise<Row[]> {
  const dataDir = context.folder();
  {
    await using inner = context.unpinned();
    const server = await inner.server(benchFunctions, dataDir);
    for (let start = 0; start < MEGABYTES * 1e6 / CHARS; start += FILL_COUNT) {
      await server.call("mutation", "rows:fill", { start, count: FILL_COUNT, chars: CHARS });
    }
  }
  const times: number[] = [];
  const processorMs: number[] = [];
  for (let round = -1; round < roundsOf(context); round++) {
    await using inner = context.inner();
    const startedAt = performance.now();
    const server = await inner.server(benchFunctions, dataDir);
    const ms = performance.now() - startedAt;
    const spent = await treeTimeUs(server.pid) / 1_000;
    // The first reads the files for all.
    if (round < 0) continue;
    times.push(ms);
    processorMs.push(spent);
  }
  return [{
    name: `listening after a start on ${MEGABYTES} MB of data`,
    measured: `${median(times).toFixed(0)} ms, ${median(processorMs).toFixed(0)} ms of processor`,
    control: "",
    ratio: median(times),
    target: { atMost: 500 },
    details: { times, processorMs },
  }];
}
