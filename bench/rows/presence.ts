/** A room of 1,000 members with five changes per second each: delivery to the others, and processor time of the server. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { treeTimeUs } from "../support/cost.ts";
import { percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const MEMBERS = 1_000;
const PER_SECOND = 5;

export async function presenceRows(context: BenchContext): Promise<Row[]> {
  const seconds = context.full ? 60 : 10;
  const { pid, port } = await context.server(benchFunctions);
  const load = context.load();
  const options = { port, members: MEMBERS, perSecond: PER_SECOND, observers: 5 };
  // Compiles the code.
  await load.run("roomMembers", { ...options, seconds: 2 });
  const [startUs, startAt] = [await treeTimeUs(pid), performance.now()];
  const { deliveryMs, bytes, frames, receivedShare } = await load.run("roomMembers", { ...options, seconds });
  const cores = (await treeTimeUs(pid) - startUs) / 1_000 / (performance.now() - startAt);
  const p95 = percentile(deliveryMs, 0.95);
  const frameSize = `${(bytes / frames / 1024).toFixed(1)} KiB, ${(frames / seconds).toFixed(1)}/s`;
  return [
    {
      name: `room of ${MEMBERS} members at ${PER_SECOND} changes/s each: p95 of the delivery`,
      measured: `${p95.toFixed(1)} ms`,
      control: `${(100 * receivedShare).toFixed(0)} % of the changes in frames of ${frameSize}`,
      ratio: p95,
      target: { atMost: 150 },
      details: { p50Ms: percentile(deliveryMs, 0.5), p99Ms: percentile(deliveryMs, 0.99) },
    },
    {
      name: "the same: processors of the server",
      measured: cores.toFixed(2),
      control: "1",
      ratio: cores,
      target: { atMost: 1 },
      details: {},
    },
  ];
}
