/** Recurring work: one run at a time, failures reported, no run after closing. */
import assert from "node:assert/strict";
import { RecurringWork } from "../../mod/kit/clock.ts";

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));

Deno.test("runs at intervals, and immediately when requested, never concurrently", async () => {
  let running = 0;
  let runs = 0;
  await using work = new RecurringWork({
    intervalMs: 5,
    async work() {
      assert.equal(++running, 1);
      await turn();
      running--;
      runs++;
    },
    onError: (error) => assert.fail(String(error)),
  });
  await Promise.all([work.run(), work.run()]);
  assert.equal(runs, 1);
  while (runs < 3) await turn();
});

Deno.test("reports failures and continues", async () => {
  const errors: unknown[] = [];
  await using work = new RecurringWork({
    intervalMs: 60_000,
    work: () => Promise.reject(new Error(`failure ${errors.length + 1}`)),
    onError: (error) => errors.push(error),
  });
  await work.run();
  await work.run();
  assert.deepEqual(errors.map(String), ["Error: failure 1", "Error: failure 2"]);
});

Deno.test("closing aborts the run in progress, waits for it and hides its error; no run follows", async () => {
  let ended = false;
  let runs = 0;
  const work = new RecurringWork({
    intervalMs: 60_000,
    async work(signal) {
      runs++;
      while (!signal.aborted) await turn();
      await turn();
      ended = true;
      throw new Error("broken off");
    },
    onError: (error) => assert.fail(String(error)),
  });
  void work.run();
  await work[Symbol.asyncDispose]();
  assert(ended);
  await work.run();
  assert.equal(runs, 1);
});
