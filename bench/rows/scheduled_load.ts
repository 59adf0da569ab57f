/** Latency of client calls while 10,000 jobs are due at once. */
import type { BenchContext } from "../context.ts";
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const JOBS = 10_000;
const BATCH = 1_000;
/** Time from the start of scheduling until the jobs are due. */
const AHEAD_MS = 6_000;
const P99_MS_MAX = 250;

export async function scheduledLoadRows(context: BenchContext): Promise<Row[]> {
  const server = await context.server("tests/scheduler/functions");
  const dueAt = Date.now() + AHEAD_MS;
  for (let round = 0; round < JOBS / BATCH; round++) {
    const inMs = Math.max(0, dueAt - Date.now());
    await server.call("mutation", "work:plan", { round, count: BATCH, inMs, everyMs: 0, actions: false });
  }
  using connection = await RawHttp.connect(server.port);
  const call = JSON.stringify({ path: "work:touch", args: {} });
  const times: number[] = [];
  for (let open = JOBS; open > 0;) {
    for (let i = 0; i < 50; i++) {
      const startedAt = performance.now();
      await connection.post("/api/mutation", call);
      if (Date.now() >= dueAt) times.push(performance.now() - startedAt);
    }
    if (Date.now() >= dueAt) open = await server.call("query", "work:openJobs").then(Number, () => open);
  }
  const seconds = (Date.now() - dueAt) / 1000;
  const p99 = percentile(times, 0.99);
  return [{
    name: `mutation calls beside ${JOBS} jobs due at once, p99`,
    measured: `${p99.toFixed(1)} ms`,
    control: `${P99_MS_MAX} ms; all jobs ran in ${seconds.toFixed(1)} s`,
    ratio: p99 / P99_MS_MAX,
    target: { atMost: 1 },
    details: { times },
  }];
}
