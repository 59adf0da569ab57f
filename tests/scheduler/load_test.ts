/** 10,000 jobs due at once: all run, and calls of clients go on meanwhile. */
import assert from "node:assert/strict";
import { RawHttp } from "../support/processes/raw_http.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { TempFolder } from "../support/temp_folder.ts";

const JOBS = 10_000;
const BATCH = 1_000;
/** Time until they are due: they are scheduled before. */
const AHEAD_MS = 6_000;
/** The machine is anybody's: what matters is that calls do not wait for the jobs, which take seconds. */
const P99_MS_MAX = 250;

Deno.test("10,000 jobs due at once do not stall calls", async () => {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  await using server = await ServerProcess.start({ dataDir, functions: "tests/scheduler/functions" });
  const dueAt = Date.now() + AHEAD_MS;
  for (let round = 0; round < JOBS / BATCH; round++) {
    const inMs = Math.max(0, dueAt - Date.now());
    await server.call("mutation", "work:plan", { round, count: BATCH, inMs, everyMs: 0, actions: false });
  }
  using connection = await RawHttp.connect(server.port);
  const call = JSON.stringify({ path: "work:touch", args: {} });
  const took: number[] = [];
  const startedAt = performance.now();
  for (let open = JOBS; open > 0;) {
    for (let i = 0; i < 50; i++) {
      const at = performance.now();
      await connection.post("/api/mutation", call);
      if (Date.now() >= dueAt) took.push(performance.now() - at);
    }
    if (Date.now() >= dueAt) open = await server.call("query", "work:openJobs").then(Number, () => open);
    assert(performance.now() - startedAt < 120_000, "the jobs do not come to an end");
  }
  const seconds = (Date.now() - dueAt) / 1000;
  took.sort((a, b) => a - b);
  const p99 = took[Math.floor(took.length * 0.99)] ?? Infinity;
  const p50 = took[Math.floor(took.length / 2)] ?? Infinity;
  // deno-lint-ignore no-console -- the figures
  console.log(
    `${JOBS} jobs in ${seconds.toFixed(1)} s; ${took.length} calls meanwhile: ` +
      `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, longest ${took.at(-1)?.toFixed(1)} ms`,
  );
  assert(p99 < P99_MS_MAX, `p99 ${p99} ms`);
  for (let round = 0; round < JOBS / BATCH; round++) {
    const { runs } = await server.call("query", "work:outcome", { round }) as { runs: number[] };
    assert.equal(new Set(runs).size, BATCH);
    assert.equal(runs.length, BATCH);
  }
});
