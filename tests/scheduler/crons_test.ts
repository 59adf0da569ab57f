/** Cron jobs on the real engine, with a clock controlled by the test. */
import assert from "node:assert/strict";
import { cronJobs } from "syncline/server";
import { serviceCron } from "../../mod/scheduler/mod.ts";
import { World } from "./support/test_scheduler.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function everyTenMinutes(path = "app:note") {
  const crons = cronJobs();
  crons.interval("often", { minutes: 10 }, path, { text: "often" });
  return crons;
}

async function times(world: World): Promise<number[]> {
  return await world.query("app:times") as number[];
}

Deno.test("an interval remains aligned even if its runs are late", async () => {
  await using world = await World.open({ crons: everyTenMinutes() });
  const start = world.clock.now();
  world.clock.moveTo(start + 13 * MINUTE);
  await world.quiet();
  await world.advance(17 * MINUTE);
  assert.deepEqual((await times(world)).map((at) => (at - start) / MINUTE), [0, 13, 20, 30]);
});

Deno.test("one run replaces the runs missed while the server was down", async () => {
  const crons = cronJobs();
  crons.daily("nightly", { hourUTC: 3, minuteUTC: 0 }, "app:note", { text: "nightly" });
  await using world = await World.open({ crons });
  const start = world.clock.now();
  await world.restart({ downMs: 72 * HOUR + MINUTE });
  await world.advance(3 * HOUR);
  assert.deepEqual((await times(world)).map((at) => (at - start) / HOUR), [72 + 1 / 60, 75]);
});

Deno.test("a cron job does not overlap with itself", async () => {
  await using world = await World.open({ crons: everyTenMinutes("app:wait") });
  await world.advance(35 * MINUTE);
  assert.deepEqual(await world.query("app:texts"), ["often began"]);
  world.holds.release();
  await world.quiet();
  await world.advance(5 * MINUTE);
  assert.deepEqual(await world.query("app:texts"), ["often began", "often ended", "often began"]);
});

Deno.test("a run interrupted by a server stop does not block the cron job", async () => {
  await using world = await World.open({ crons: everyTenMinutes("app:wait") });
  await world.restart({ downMs: MINUTE });
  await world.advance(9 * MINUTE);
  assert.deepEqual(await world.query("app:texts"), ["often began", "often began"]);
});

Deno.test("a restart neither repeats a run nor moves the next one", async () => {
  await using world = await World.open({ crons: everyTenMinutes() });
  const start = world.clock.now();
  for (let i = 0; i < 3; i++) await world.restart({ downMs: 3 * MINUTE });
  await world.advance(2 * MINUTE);
  assert.deepEqual((await times(world)).map((at) => (at - start) / MINUTE), [0, 10]);
});

Deno.test("a cron job keeps the row of its newest run only", async () => {
  await using world = await World.open({ crons: everyTenMinutes() });
  await world.advance(5 * HOUR);
  const jobs = await world.query("app:jobs") as { scheduledTime: number; state: unknown }[];
  assert.deepEqual(jobs.map(({ scheduledTime, state }) => [scheduledTime, state]), [
    [world.clock.now(), { kind: "success" }],
  ]);
});

Deno.test("a failed run does not stop the cron job", async () => {
  const crons = cronJobs();
  crons.interval("failing", { minutes: 10 }, "app:note", { text: "bad" });
  await using world = await World.open({ crons });
  await world.advance(30 * MINUTE);
  assert.equal(world.logged.filter((line) => line === "warn Scheduled function failed no bad").length, 4);
});

Deno.test("new code changes, adds and removes cron jobs; an unchanged schedule keeps its next run", async () => {
  await using world = await World.open({ crons: everyTenMinutes() });
  await world.advance(5 * MINUTE);
  const changed = cronJobs();
  changed.interval("often", { minutes: 10 }, "app:note", { text: "often, changed" });
  changed.hourly("hourly", { minuteUTC: 30 }, "app:note", { text: "hourly" });
  world.crons = changed;
  world.scheduler.reload();
  await world.quiet();
  assert.deepEqual(await world.query("app:texts"), ["often"]);
  await world.advance(6 * MINUTE);
  assert.deepEqual(await world.query("app:texts"), ["often", "often, changed"]);
  const fewer = cronJobs();
  fewer.hourly("hourly", { minuteUTC: 20 }, "app:note", { text: "hourly" });
  world.crons = fewer;
  world.scheduler.reload();
  await world.advance(10 * MINUTE);
  assert.deepEqual(await world.query("app:texts"), ["often", "often, changed", "hourly"]);
});

Deno.test("removing a cron job removes its pending run", async () => {
  await using world = await World.open();
  const crons = cronJobs();
  crons.interval("often", { minutes: 10 }, "app:note", { text: "often" });
  world.crons = crons;
  world.fault = ({ udfPath }) =>
    udfPath.endsWith(":runMutation") ? { message: "full", retryable: true } : null;
  world.scheduler.reload();
  await world.quiet();
  world.crons = undefined;
  world.scheduler.reload();
  await world.quiet();
  world.fault = () => null;
  await world.advance(HOUR);
  assert.deepEqual(await world.query("app:texts"), []);
  const jobs = await world.query("app:jobs") as { state: unknown }[];
  assert.deepEqual(jobs.map(({ state }) => state), [{ kind: "canceled" }]);
});

Deno.test("a cron job that cannot be started is started later, once", async () => {
  await using world = await World.open({ crons: everyTenMinutes() });
  world.fault = ({ udfPath }) => udfPath.endsWith("crons:start") ? { message: "the disk is full" } : null;
  await world.advance(25 * MINUTE);
  world.fault = () => null;
  await world.advance(2 * MINUTE);
  assert.equal((await times(world)).length, 2);
});

Deno.test("service cron jobs run system functions and are not listed as the app's", async () => {
  const clean = serviceCron("svc-clean", { kind: "interval", everyMs: HOUR }, {
    path: "_system/scheduler:cleanAll",
    kind: "action",
  });
  await using world = await World.open({ crons: everyTenMinutes(), serviceCrons: [clean] });
  await world.advance(HOUR);
  const jobs = await world.query("app:jobs") as { name: string; state: unknown }[];
  assert.deepEqual(jobs.find(({ name }) => name === "_system/scheduler:cleanAll")?.state, {
    kind: "success",
  });
  await assert.rejects(world.act("_system/scheduler:cleanAll"), /There is no function/);
  world.crons = undefined;
  world.scheduler.reload();
  await world.scheduler.setServiceCron(
    serviceCron("svc-clean", { kind: "interval", everyMs: MINUTE }, {
      path: "_system/scheduler:interrupt",
      kind: "mutation",
    }),
  );
  await world.quiet();
  await world.scheduler.removeServiceCron("svc-clean");
  await world.advance(HOUR);
  const left = await world.query("app:jobs") as { name: string }[];
  assert.deepEqual(left.map(({ name }) => name).sort(), ["_system/scheduler:interrupt", "app:note"]);
});

Deno.test("the app cannot declare service cron jobs or cron jobs that run system functions", async () => {
  await using world = await World.open();
  const cron = {
    schedule: { kind: "interval", everyMs: 1_000 },
    functionKind: "mutation",
    args: {},
    firstRun: 0,
  };
  for (const [name, path] of [["svc-x", "app:note"], ["x", "_system/scheduler:interrupt"]]) {
    await assert.rejects(
      world.system("_system/crons:declare", { of: "app", crons: [{ ...cron, name, function: path }] }),
      /for a cron job of the app/,
    );
  }
});
