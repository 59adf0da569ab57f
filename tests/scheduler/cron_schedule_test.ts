import assert from "node:assert/strict";
import fc from "fast-check";
import { cronExpressionFault, nextCronTime } from "../../mod/kit/cron_expression.ts";
import { type CronSchedule, firstRun, nextRun } from "../../mod/scheduler/tables.ts";

const at = (text: string) => Date.parse(text);

Deno.test("expressions have five or six fields and are in UTC", () => {
  const next = (expression: string) =>
    new Date(nextCronTime(expression, at("2030-01-01T00:00:00Z")) ?? NaN).toISOString();
  assert.equal(next("30 3 * * *"), "2030-01-01T03:30:00.000Z");
  assert.equal(next("0 0 * * *"), "2030-01-02T00:00:00.000Z", "the moment itself is over");
  assert.equal(next("*/10 * * * * *"), "2030-01-01T00:00:10.000Z");
  assert.equal(next("0 9 * * MON-FRI"), "2030-01-01T09:00:00.000Z");
  assert.equal(next("0 0 31 * *"), "2030-01-31T00:00:00.000Z");
  assert.equal(next("0 0 29 2 *"), "2032-02-29T00:00:00.000Z");
});

Deno.test("an invalid or unreachable expression is rejected with the reason", () => {
  assert.equal(cronExpressionFault("*/5 * * * *"), null);
  assert.match(cronExpressionFault("every day") ?? "", /five fields/);
  assert.match(cronExpressionFault("61 * * * *") ?? "", /minute/);
  assert.match(cronExpressionFault("0 0 31 2 *") ?? "", /never|no time/);
  assert.match(cronExpressionFault("") ?? "", /five fields/);
});

const schedules: fc.Arbitrary<CronSchedule> = fc.oneof(
  fc.record({ kind: fc.constant("interval" as const), everyMs: fc.integer({ min: 1_000, max: 10 ** 8 }) }),
  fc.record({
    kind: fc.constant("expression" as const),
    expression: fc.constantFrom("* * * * *", "*/7 3 * * *", "0 0 1 * *", "30 12 * * 0", "15 * * * * *"),
  }),
);

Deno.test("the next run is later than now and aligned to the schedule, skipping missed runs", () => {
  const start = at("2030-01-01T00:00:00Z");
  fc.assert(fc.property(schedules, fc.nat(10 ** 9), fc.nat(10 ** 9), (schedule, dueIn, late) => {
    const dueAt = schedule.kind === "interval"
      ? start + dueIn
      : nextCronTime(schedule.expression, start + dueIn);
    assert(dueAt !== null);
    const now = dueAt + late;
    const next = nextRun(schedule, { dueAt, now });
    assert(next !== null && next > now);
    if (schedule.kind === "interval") {
      assert.equal((next - dueAt) % schedule.everyMs, 0);
      assert(next - now <= schedule.everyMs);
    } else {
      assert.equal(nextCronTime(schedule.expression, now), next);
    }
  }));
});

Deno.test("a new interval starts immediately, a new expression at its time", () => {
  assert.equal(firstRun({ kind: "interval", everyMs: 1_000 }, 5), 5);
  assert.equal(firstRun({ kind: "expression", expression: "0 0 * * *" }, 5), 86_400_000);
});
