/** Live tails of a batch: exactly the matching runs, each encoded once, within limits. */
import assert from "node:assert/strict";
import { logLimits } from "../../../mod/ops/limits.ts";
import type { TailedMessage } from "../../../mod/ops/log/worker/messages.ts";
import { Tails } from "../../../mod/ops/log/worker/tails.ts";
import type { RunRecord } from "../../../mod/ops/log/run_record.ts";
import { filters, isWanted, seeded, someRun, START } from "./support/some_runs.ts";

const FIRST_ID = 1_000;

const decoder = new TextDecoder();

/** IDs reported to a tail, and the number of further matches. */
function reportedTo(tail: number, message: TailedMessage | null) {
  const share = message?.batches.find((share) => share.tail === tail);
  const ids = (share?.events ?? []).map((position) =>
    Number(/^id: (\d+)\n/.exec(decoder.decode(message?.events[position]))?.[1])
  );
  return { ids, missed: share?.missed ?? 0 };
}

Deno.test("[LS1] [LS7] for every filter a tail gets exactly the matching runs, up to a limit", () => {
  const random = seeded(11);
  const tails = new Tails();
  filters.forEach((filter, tail) => tails.set(tail, filter));
  for (const count of [1, 7, 400]) {
    const runs = Array.from({ length: count }, (_, i) => someRun(random, START + 500 + i));
    const message = tails.pick(runs, FIRST_ID);
    for (const [tail, filter] of filters.entries()) {
      const passing = runs.flatMap((run, i) => isWanted(filter, run) ? [FIRST_ID + i] : []);
      const wanted = {
        ids: passing.slice(0, logLimits.streamRunsMax),
        missed: Math.max(0, passing.length - logLimits.streamRunsMax),
      };
      assert.deepEqual(reportedTo(tail, message), wanted, `${count} runs, ${JSON.stringify(filter)}`);
    }
    const { events = [], lastId } = message ?? {};
    assert.equal(
      new Set(events.map((event) => decoder.decode(event))).size,
      events.length,
      "each event is encoded once",
    );
    assert.equal(lastId, FIRST_ID + count - 1);
  }
});

Deno.test("[LS7] tails with the same matches share events, even with different filters", () => {
  const run: RunRecord = [START, "notes:add", 1, null, 0, 0, 1, 7, 1, 0, 0, 0, 0, 0, null, []];
  const tails = new Tails();
  for (let tail = 0; tail < 200; tail++) tails.set(tail, { from: tail });
  tails.set(200, { functions: ["notes:remove"] });
  const message = tails.pick([run, run], FIRST_ID);
  assert.deepEqual([message?.events.length, message?.batches.length], [2, 200]);
  for (let tail = 0; tail < 200; tail++) tails.delete(tail);
  assert.equal(tails.pick([run], FIRST_ID), null, "the remaining tail matches neither");
});

Deno.test("[LS8] events of the largest runs are limited for all tails together, and the others counted", () => {
  const line = `[INFO] ${"x".repeat(logLimits.linesCharsMax - 10)}`;
  const fitting = Math.ceil(logLimits.tailedBytesMax / logLimits.linesCharsMax);
  const runs = Array.from({ length: 2 * fitting }, (_, i): RunRecord => {
    const path = `large:fn${i % 20}`;
    return [START, path, 1, null, 0, 2, i, 7, 1, 0, 0, 0, 0, 0, null, [line]];
  });
  const tails = new Tails();
  for (let tail = 0; tail < 20; tail++) tails.set(tail, { functions: [`large:fn${tail}`] });
  const message = tails.pick(runs, FIRST_ID);
  const chars = (message?.events ?? []).reduce((sum, event) => sum + event.length, 0);
  assert.ok(chars < logLimits.tailedBytesMax + 2 * logLimits.linesCharsMax, String(chars));
  let reported = 0;
  for (let tail = 0; tail < 20; tail++) {
    const { ids, missed } = reportedTo(tail, message);
    assert.ok(ids.length > 0, "each tail gets some");
    reported += ids.length + missed;
  }
  assert.equal(reported, runs.length);
});
