/** A stream of 50 chunks per second with 1,000 readers, from the write in the action to the arrival at each reader. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { treeTimeUs } from "../support/cost.ts";
import { percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const READERS = 1_000;
const PER_SECOND = 50;

export async function streamRows(context: BenchContext): Promise<Row[]> {
  const seconds = context.full ? 60 : 10;
  const { pid, port } = await context.server(benchFunctions);
  const load = context.load();
  const [startUs, startAt] = [await treeTimeUs(pid), performance.now()];
  const { deliveryMs, complete } = await load.run("streamReaders", {
    ...{ port, readers: READERS, chunks: seconds * PER_SECOND, intervalMs: 1_000 / PER_SECOND },
  });
  const cores = (await treeTimeUs(pid) - startUs) / 1_000 / (performance.now() - startAt);
  const p95 = percentile(deliveryMs, 0.95);
  return [{
    name: `stream of ${PER_SECOND} chunks/s to ${READERS} readers: p95 of the delivery`,
    measured: `${p95.toFixed(1)} ms`,
    control: `${complete} readers complete, ${cores.toFixed(2)} processors`,
    ratio: p95,
    target: { atMost: 50 },
    details: { p50Ms: percentile(deliveryMs, 0.5), p99Ms: percentile(deliveryMs, 0.99), cores },
  }];
}
