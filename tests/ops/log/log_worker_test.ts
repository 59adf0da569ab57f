/** Requests to a log worker that cannot open its log, or that fails. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ServiceError } from "../../../mod/errors.ts";
import { logLimits } from "../../../mod/ops/limits.ts";
import { LogWorker } from "../../../mod/ops/log/worker/log_worker.ts";
import { TempFolder } from "../../support/temp_folder.ts";

function workerIn(dataDir: string, logged: string[] = []): LogWorker {
  return new LogWorker({
    path: join(dataDir, "logs.db"),
    retention: { keepMs: 1_000, bytesMax: 1_000_000 },
    log: (_level, message) => void logged.push(message),
    onStart: () => {},
    onTailed: () => {},
  });
}

Deno.test("[EL13] requests are answered if the log cannot be opened, and their number is limited", async () => {
  await using temp = new TempFolder();
  await using worker = workerIn(join(temp.path, "gone"));
  const codes = await Promise.all(
    Array.from({ length: logLimits.questionsMax + 1 }, async () => {
      try {
        await worker.ask("loadFigures", 0);
      } catch (error) {
        return (error as ServiceError).code;
      }
    }),
  );
  assert.deepEqual(codes, [...Array(logLimits.questionsMax).fill("unavailable"), "overloaded"]);
});

Deno.test("[EL13] a failed worker is replaced, and the server continues", async () => {
  await using temp = new TempFolder();
  const logged: string[] = [];
  await using worker = workerIn(temp.path, logged);
  worker.begin();
  assert.equal(await worker.call("store", "no JSON"), null);
  assert.deepEqual([worker.running, logged], [false, ["Log worker failed, restarting"]]);
  await assert.rejects(worker.ask("loadFigures", 0), { code: "unavailable" });
  while (!worker.running) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(await worker.ask("loadFigures", 0), []);
});

Deno.test("[EL15] searches that wait for the worker share the search timeout", async () => {
  await using temp = new TempFolder();
  await using worker = workerIn(temp.path);
  worker.begin();
  assert.equal(worker.searchShare, 1);
  const first = worker.ask("loadFigures", 0);
  assert.equal(worker.searchShare, 1 / 2);
  const others = Array.from({ length: 12 }, () => worker.ask("loadFigures", 0));
  assert.equal(worker.searchShare, logLimits.searchShareMin);
  await Promise.all([first, ...others]);
  assert.equal(worker.searchShare, 1);
});
