/** The queue of runs for the log worker. */
import assert from "node:assert/strict";
import { logLimits } from "../../../mod/ops/limits.ts";
import { RunQueue } from "../../../mod/ops/log/execution_log.ts";
import type { RunRecord } from "../../../mod/ops/log/run_record.ts";

const run = (at: number): RunRecord => [at, "f", 0, null, 0, 0, at, null, 0, 0, 0, 0, 0, 0, null, []];

Deno.test("[EL18] runs are sent in order and in batches; a full queue drops the newest and counts them", async () => {
  const batches: (readonly RunRecord[])[] = [];
  let open = false;
  const queue = new RunQueue({
    isOpen: () => open,
    send: (runs) => {
      batches.push(runs);
      return Promise.resolve(true);
    },
  });
  for (let at = 0; at < logLimits.queuedRunsMax + 7; at++) queue.push(run(at), 1);
  assert.deepEqual([queue.size, queue.dropped], [logLimits.queuedRunsMax, 7]);
  await queue.flush();
  assert.equal(batches.length, 0, "no worker is running");
  open = true;
  await queue.flush();
  assert.equal(batches.length, logLimits.queuedRunsMax / logLimits.batchRunsMax);
  assert.deepEqual(
    batches.flat().map(([at]) => at),
    Array.from({ length: logLimits.queuedRunsMax }, (_, at) => at),
  );
  queue.push(run(1), logLimits.queuedCharsMax);
  queue.push(run(2), 1);
  assert.deepEqual([queue.size, queue.dropped], [1, 8], "their characters are limited too");
  await queue.close();
  queue.push(run(3), 1);
  assert.equal(queue.dropped, 9);
});

Deno.test("[EL18] runs with much text are sent in batches that are stored in time", async () => {
  const sizes: number[] = [];
  const queue = new RunQueue({
    isOpen: () => true,
    send: (runs) => {
      sizes.push(runs.length);
      return Promise.resolve(true);
    },
  });
  const chars = logLimits.batchCharsMax / 2;
  for (const size of [chars, chars, 1, 4 * chars, 1, 1]) queue.push(run(1), size);
  await queue.close();
  assert.deepEqual([sizes, queue.size], [[2, 1, 1, 2], 0]);
});

Deno.test("[EL18] a slow log does not delay a shutdown", async () => {
  let sent = 0;
  const queue = new RunQueue({
    isOpen: () => true,
    send: async (runs) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      sent += runs.length;
      return true;
    },
  });
  for (let at = 0; at < 100; at++) queue.push(run(at), logLimits.queuedCharsMax / 100);
  await queue.close(40);
  assert.ok(sent > 0 && sent < 50, String(sent));
  assert.deepEqual([queue.dropped, queue.size], [100 - sent, 0]);
});

Deno.test("[EL15] a search waits for queued runs for a limited time", async () => {
  const stored = Promise.withResolvers<boolean>();
  const queue = new RunQueue({ isOpen: () => true, send: () => stored.promise });
  queue.push(run(1), 1);
  await queue.flush(10);
  assert.deepEqual([queue.size, queue.dropped], [0, 0]);
  stored.resolve(true);
  await queue.close();
});

Deno.test("[EL18] lost runs are counted; a flush waits only for runs queued before it", async () => {
  const taken = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()];
  let sent = 0;
  const queue = new RunQueue({
    isOpen: () => true,
    send: () => taken[sent++]?.promise ?? Promise.resolve(true),
  });
  queue.push(run(1), 1);
  const first = queue.flush();
  while (sent === 0) await Promise.resolve();
  queue.push(run(2), 1);
  queue.push(run(3), 1);
  const second = queue.flush();
  taken[0]?.resolve(false);
  await first;
  assert.equal(queue.dropped, 1);
  taken[1]?.resolve(true);
  await second;
  assert.deepEqual([queue.size, queue.dropped, sent], [0, 1, 2]);
  await queue.close();
});
