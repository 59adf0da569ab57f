/** Live tails of a batch: exactly the matching runs, each encoded once, within limits. */
import assert from "node:assert/strict";
import { logLimits } from "../../../mod/ops/limits.ts";
import type { TailedMessage } from "../../../mod/ops/log/process/messages.ts";
import { Tails } from "../../../mod/ops/log/process/tails.ts";
import type { RunRecord } from "../../../mod/ops/log/run_record.ts";
import { admitsRun, packed } from "./support/packed.ts";
import { filters, seeded, someRun, START } from "./support/some_runs.ts";

const FIRST_ID = 1_000;

/** IDs reported to a tail, and the number of further matches. */
function toldTo(tail: number, message: TailedMessage | null) {
  const share = message?.told.find(({ tails }) => tails.includes(tail));
  const ids = (share?.events ?? []).map((position) =>
    Number(/^id: (\d+)\n/.exec(message?.events[position] ?? "")?.[1])
  );
  return { ids, missed: share?.missed ?? 0 };
}

Deno.test("[LS1] [LS7] for every filter a tail gets exactly the matching runs, up to a limit", () => {
  const random = seeded(11);
  const tails = new Tails();
  filters.forEach((filter, tail) => tails.set(tail, filter));
  for (const count of [1, 7, 400]) {
    const runs = Array.from({ length: count }, (_, i) => someRun(random, START + 500 + i));
    const message = tails.pick(packed(runs), FIRST_ID);
    for (const [tail, filter] of filters.entries()) {
      const passing = runs.flatMap((run, i) => admitsRun(filter, run) ? [FIRST_ID + i] : []);
      const wanted = {
        ids: passing.slice(0, logLimits.streamRunsMax),
        missed: Math.max(0, passing.length - logLimits.streamRunsMax),
      };
      assert.deepEqual(toldTo(tail, message), wanted, `${count} runs, ${JSON.stringify(filter)}`);
    }
    const { events = [], lastId } = message ?? {};
    assert.equal(new Set(events).size, events.length, "no event is written twice");
    assert.equal(lastId, FIRST_ID + count - 1);
  }
});

Deno.test("[LS7] tails with the same matches in a batch share them, even with different filters", () => {
  const run: RunRecord = [START, "notes:add", 1, null, 0, 0, 1, 7, 1, 0, 0, 0, 0, 0, null, []];
  const tails = new Tails();
  for (let tail = 0; tail < 200; tail++) tails.set(tail, { from: tail });
  tails.set(200, { functions: ["notes:remove"] });
  const message = tails.pick(packed([run, run]), FIRST_ID);
  assert.deepEqual([message?.events.length, message?.told.length], [2, 1]);
  assert.equal(message?.told[0]?.tails.length, 200);
  for (let tail = 0; tail < 200; tail++) tails.delete(tail);
  assert.equal(tails.pick(packed([run]), FIRST_ID), null, "nobody who is left wants any of it");
});

Deno.test("[LS8] events of the largest runs are limited for all tails together, and the others counted", () => {
  const line = `[INFO] ${"x".repeat(logLimits.linesCharsMax - 10)}`;
  const fitting = Math.ceil(logLimits.tailedCharsMax / logLimits.linesCharsMax);
  const runs = Array.from({ length: 2 * fitting }, (_, i): RunRecord => {
    const path = `large:fn${i % 20}`;
    return [START, path, 1, null, 0, 2, i, 7, 1, 0, 0, 0, 0, 0, null, [line]];
  });
  const tails = new Tails();
  for (let tail = 0; tail < 20; tail++) tails.set(tail, { functions: [`large:fn${tail}`] });
  const message = tails.pick(packed(runs), FIRST_ID);
  const chars = (message?.events ?? []).reduce((sum, event) => sum + event.length, 0);
  assert.ok(chars < logLimits.tailedCharsMax + 2 * logLimits.linesCharsMax, String(chars));
  let told = 0;
  for (let tail = 0; tail < 20; tail++) {
    const { ids, missed } = toldTo(tail, message);
    assert.ok(ids.length > 0, "each has a part");
    told += ids.length + missed;
  }
  assert.equal(told, runs.length);
});
