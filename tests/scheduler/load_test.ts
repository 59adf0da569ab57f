/** Many jobs due at once: each runs once, and client calls are answered. Measured by `deno task bench scheduled`. */
import assert from "node:assert/strict";
import { ServerProcess } from "../support/processes/server_process.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { retry } from "../support/waiting.ts";

const JOBS = 2_000;
const BATCH = 1_000;

Deno.test("client calls are answered while many jobs are due at once, and each job runs once", async () => {
  await using dataFolder = new TempFolder();
  await using server = await ServerProcess.start({
    dataDir: dataFolder.path,
    functions: "tests/scheduler/functions",
  });
  let rounds = 0;
  // On a busy machine all jobs may run before this process sends a call. Then more are planned.
  await retry(async () => {
    for (const planned = rounds + JOBS / BATCH; rounds < planned; rounds++) {
      const plan = { round: rounds, count: BATCH, inMs: 0, everyMs: 0, actions: false };
      await server.call("mutation", "work:plan", plan);
    }
    let between = 0;
    for (let open = JOBS; open > 0;) {
      await server.call("mutation", "work:touch", {});
      open = Number(await server.call("query", "work:openJobs"));
      if (open > 0) between++;
    }
    return between > 0;
  }, { what: "a call is answered before all jobs have run" });
  for (let round = 0; round < rounds; round++) {
    const { runs } = await server.call("query", "work:outcome", { round }) as { runs: number[] };
    assert.equal(new Set(runs).size, BATCH);
    assert.equal(runs.length, BATCH);
  }
});
