/** Queries to a log process that cannot be started. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ServiceError } from "../../../mod/errors.ts";
import { logLimits } from "../../../mod/ops/limits.ts";
import { LogProcess } from "../../../mod/ops/log/process/log_process.ts";
import { TempFolder } from "../../support/temp_folder.ts";

Deno.test("EL13 queries are answered if the process cannot be started, and their number is limited", async () => {
  await using temp = new TempFolder();
  const dataDir = join(temp.path, "gone");
  await using process = new LogProcess({
    dataDir,
    path: join(dataDir, "log.db"),
    retention: { keepMs: 1_000, bytesMax: 1_000_000 },
    cacheBytes: 100_000,
    log: () => {},
    onStart: () => {},
    onTailed: () => {},
    waits: true,
  });
  const codes = await Promise.all(
    Array.from({ length: logLimits.questionsMax + 1 }, async () => {
      try {
        await process.ask("figures", { now: 0 });
      } catch (error) {
        return (error as ServiceError).code;
      }
    }),
  );
  const expected = [...Array(logLimits.questionsMax).fill("unavailable"), "overloaded"];
  assert.deepEqual(codes, expected);
});
