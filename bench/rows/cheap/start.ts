/** Start of a server on 500 MB of documents, until it listens. */
import { type BenchContext, benchFunctions } from "../../context.ts";
import { treeTimeUs } from "../../support/cost.ts";
import { roundsOf } from "../../support/rounds.ts";
import { seedRows } from "../../support/seed.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";

const MEGABYTES = 500;
const CHARS = 10_000;

export async function startRows(context: BenchContext): Promise<Row[]> {
  const dataDir = context.folder();
  {
    await using inner = context.unpinned();
    const server = await inner.server(benchFunctions, { dataDir });
    await seedRows(server, { count: MEGABYTES * 1e6 / CHARS, chars: CHARS });
  }
  const times: number[] = [];
  const processorMs: number[] = [];
  for (let round = 0; round <= roundsOf(context); round++) {
    await using inner = context.inner();
    const startedAt = performance.now();
    const server = await inner.server(benchFunctions, { dataDir });
    const ms = performance.now() - startedAt;
    const usedMs = await treeTimeUs(server.pid) / 1_000;
    // The first round reads the files into the cache of the operating system.
    if (round === 0) continue;
    times.push(ms);
    processorMs.push(usedMs);
  }
  return [{
    name: `listening after a start on ${MEGABYTES} MB`,
    measured: `${median(times).toFixed(0)} ms, ${median(processorMs).toFixed(0)} ms of processor time`,
    control: "",
    ratio: median(times),
    target: { atMost: 500 },
    details: { times, processorMs },
  }];
}
