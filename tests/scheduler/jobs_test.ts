/** Scheduled functions on the real engine, with a clock controlled by the test. */
import assert from "node:assert/strict";
import { schedulerLimits } from "../../mod/functions/limits.ts";
import { steadyClock } from "../../mod/kit/clock.ts";
import { Scheduler } from "../../mod/scheduler/scheduler.ts";
import { World } from "./support/test_scheduler.ts";

const SECOND = 1_000;
const DAY = 86_400_000;

// deno-lint-ignore no-explicit-any -- jobs have many shapes
async function jobs(world: World): Promise<any[]> {
  // deno-lint-ignore no-explicit-any -- as above
  return await world.query("app:jobs") as any[];
}

function schedule(world: World, path: string, text: string, when = 0): Promise<unknown> {
  return world.mutate("app:schedule", { path, args: { text }, when });
}

Deno.test("a job has a name, arguments, times and state until its end", async () => {
  await using world = await World.open();
  const at = world.clock.now();
  const id = await schedule(world, "app:note", "a", 5 * SECOND);
  const [waiting] = await jobs(world);
  assert.deepEqual({ ...waiting, _creationTime: 0 }, {
    _id: id,
    _creationTime: 0,
    name: "app:note",
    args: { text: "a" },
    scheduledTime: at + 5 * SECOND,
    state: { kind: "pending" },
    functionKind: "mutation",
  });
  await world.advance(5 * SECOND);
  const [ended] = await jobs(world);
  assert.deepEqual(ended.state, { kind: "success" });
  assert.equal(ended.completedTime, at + 5 * SECOND);
});

Deno.test("scheduling in a rolled back mutation, nested or not, has no effect", async () => {
  await using world = await World.open();
  await assert.rejects(world.mutate("app:scheduleAndThrow", { text: "a" }), /thrown after scheduling/);
  await world.mutate("app:scheduleInNested", { text: "b" });
  await world.quiet();
  assert.deepEqual(await world.query("app:texts"), ["b outside"]);
  assert.equal((await jobs(world)).length, 1);
});

Deno.test("a mutation's writes and its job's result are one commit", async () => {
  await using world = await World.open();
  await schedule(world, "app:note", "a");
  await world.quiet();
  const runs = world.entries.filter(({ changes }) => changes.some(({ table }) => table === "notes"));
  assert.equal(runs.length, 1);
  assert.deepEqual(runs[0]?.changes.map(({ table }) => table).sort(), ["_scheduled_functions", "notes"]);
});

Deno.test("a failed mutation leaves only its failure behind and is not retried", async () => {
  await using world = await World.open();
  await schedule(world, "app:note", "bad");
  await world.advance(DAY);
  assert.deepEqual(await world.query("app:texts"), []);
  const [job] = await jobs(world);
  assert.deepEqual(job.state, { kind: "failed", error: "no bad" });
  assert.equal(world.entries.length, 2);
  assert.match(world.stacks.join("\n"), /support\/app\.ts:\d+/, "the log does not say where");
});

Deno.test("jobs run by time, then in the order of their creation", async () => {
  await using world = await World.open();
  const at = world.clock.now() + SECOND;
  await world.mutate("app:scheduleMany", { texts: ["2", "3"], at });
  await world.mutate("app:scheduleMany", { texts: ["1"], at: at - 1 });
  await world.mutate("app:scheduleMany", { texts: ["4"], at });
  await world.advance(SECOND);
  assert.deepEqual(await world.query("app:texts"), ["1", "2", "3", "4"]);
});

Deno.test("more jobs than fit into memory run once and in order, also across a restart", async () => {
  await using world = await World.open({ jobsKnownMax: 7 });
  const texts = Array.from({ length: 120 }, (_, i) => `${i}`);
  const at = world.clock.now();
  // In reverse order, so that jobs in memory are evicted all the time.
  for (let from = 110; from >= 0; from -= 10) {
    await world.mutate("app:scheduleMany", { texts: texts.slice(from, from + 10), at: at + SECOND + from });
  }
  await world.advance(SECOND + 54);
  assert.deepEqual(await world.query("app:texts"), texts.slice(0, 60));
  await world.restart();
  await world.advance(SECOND);
  assert.deepEqual(await world.query("app:texts"), texts);
});

Deno.test("a job that became due while the server was down runs at startup", async () => {
  await using world = await World.open();
  await schedule(world, "app:note", "a", 10 * SECOND);
  await world.restart({ downMs: DAY });
  assert.deepEqual(await world.query("app:texts"), ["a"]);
});

Deno.test("scheduled functions run signed out and can call internal ones", async () => {
  await using world = await World.open();
  await schedule(world, "app:hidden", "a");
  await world.quiet();
  assert.deepEqual(await world.query("app:texts"), ["a null"]);
});

Deno.test("an action is in progress from before its first step to its end", async () => {
  await using world = await World.open();
  const id = await schedule(world, "app:wait", "a");
  await world.quiet();
  assert.deepEqual((await jobs(world))[0].state, { kind: "inProgress" });
  assert.deepEqual(await world.query("app:texts"), ["a began"]);
  world.holds.release();
  await world.quiet();
  assert.deepEqual((await jobs(world)).map(({ _id, state }) => [_id, state]), [[id, { kind: "success" }]]);
});

Deno.test("a throwing action fails and keeps its writes", async () => {
  await using world = await World.open();
  await schedule(world, "app:wait", "failing");
  await world.quiet();
  world.holds.release();
  await world.quiet();
  assert.deepEqual((await jobs(world))[0].state, { kind: "failed", error: "no failing" });
});

Deno.test("an action interrupted by a server stop is not retried", async () => {
  await using world = await World.open();
  await schedule(world, "app:wait", "a");
  await world.quiet();
  await world.restart({ downMs: SECOND });
  await world.advance(DAY);
  assert.deepEqual(await world.query("app:texts"), ["a began"]);
  const [job] = await jobs(world);
  assert.equal(job.state.kind, "failed");
  assert.match(job.state.error, /^Interrupted/);
});

Deno.test("a canceled job does not run, and canceling an ended one has no effect", async () => {
  await using world = await World.open();
  const id = await schedule(world, "app:note", "a", SECOND);
  await world.mutate("app:cancel", { id });
  await world.mutate("app:cancelOwn", { text: "b" });
  const other = await schedule(world, "app:note", "c");
  await world.advance(DAY);
  await world.mutate("app:cancel", { id: other });
  assert.deepEqual(await world.query("app:texts"), ["c"]);
  assert.deepEqual((await jobs(world)).map(({ state }) => state.kind), ["canceled", "canceled", "success"]);
});

Deno.test("a cancellation between load and run takes effect", async () => {
  await using world = await World.open();
  const id = await schedule(world, "app:note", "a", SECOND);
  // The run is queued at the writer after the cancellation.
  const [, { state }] = await Promise.all([
    world.mutate("app:cancel", { id }),
    world.system("_system/scheduler:runMutation", { id }) as Promise<{ state: unknown }>,
  ]);
  assert.equal(state, null);
  await world.quiet();
  assert.deepEqual(await world.query("app:texts"), []);
});

Deno.test("a canceled running action continues and remains canceled", async () => {
  await using world = await World.open();
  const id = await schedule(world, "app:wait", "a");
  await world.quiet();
  await world.mutate("app:cancel", { id });
  world.holds.release();
  await world.quiet();
  assert.deepEqual(await world.query("app:texts"), ["a began", "a ended"]);
  assert.equal((await jobs(world))[0].state.kind, "canceled");
});

Deno.test("a job that cannot run now runs later and keeps its position", async () => {
  await using world = await World.open();
  world.fault = ({ udfPath }) =>
    udfPath.startsWith("_system/") ? { message: "the disk is full", retryable: true } : null;
  await schedule(world, "app:note", "a");
  await schedule(world, "app:wait", "b");
  await world.advance(10 * SECOND);
  assert.deepEqual(await world.query("app:texts"), []);
  assert.deepEqual((await jobs(world)).map(({ state }) => state.kind), ["pending", "pending"]);
  world.fault = () => null;
  await world.advance(schedulerLimits.retryMsMax);
  assert.deepEqual(await world.query("app:texts"), ["a", "b began"]);
});

Deno.test("server failures are retried with delays", async () => {
  await using world = await World.open();
  let tries = 0;
  world.fault = ({ udfPath }) => {
    if (!udfPath.endsWith(":runMutation")) return null;
    tries++;
    return { message: "the disk is full", retryable: true };
  };
  await schedule(world, "app:note", "a");
  await world.advance(60 * 60 * SECOND);
  assert(tries > 50 && tries < 100, `${tries} tries in an hour`);
});

Deno.test("an action without a free runner becomes pending again and runs later", async () => {
  await using world = await World.open();
  let refused = 0;
  world.fault = ({ udfPath }) =>
    udfPath === "app:wait" && refused++ < 3 ? { message: "overloaded", retryable: true } : null;
  await schedule(world, "app:wait", "a");
  await world.quiet();
  assert.deepEqual((await jobs(world))[0].state, { kind: "pending" });
  await world.advance(10 * SECOND);
  assert.deepEqual(await world.query("app:texts"), ["a began"]);
});

Deno.test("a mutation that crashed its isolate fails and is not retried", async () => {
  await using world = await World.open();
  world.fault = ({ udfPath }) =>
    udfPath.endsWith(":runMutation") ? { message: "The mutation took longer than 5 s" } : null;
  await schedule(world, "app:note", "a");
  await world.quiet();
  world.fault = () => null;
  await world.advance(DAY);
  assert.deepEqual(await world.query("app:texts"), []);
  assert.deepEqual((await jobs(world))[0].state, {
    kind: "failed",
    error: "The mutation took longer than 5 s",
  });
});

Deno.test("recording an action's result is retried until it succeeds", async () => {
  await using world = await World.open();
  let failures = 0;
  world.fault = ({ udfPath }) =>
    udfPath.endsWith(":finish") && failures++ < 5 ? { message: "the disk is full" } : null;
  await schedule(world, "app:wait", "a");
  await world.quiet();
  world.holds.release();
  await world.quiet();
  await world.advance(10 * SECOND);
  assert.deepEqual((await jobs(world))[0].state, { kind: "success" });
  assert.equal(failures, 6);
});

Deno.test("jobs missed in the commit stream are found after a reload", async () => {
  await using world = await World.open();
  world.scheduler.applyCommits = () => {};
  await schedule(world, "app:note", "a");
  await world.quiet();
  assert.deepEqual(await world.query("app:texts"), []);
  world.scheduler.reload();
  await world.quiet();
  assert.deepEqual(await world.query("app:texts"), ["a"]);
});

Deno.test("a clock that may be set is checked periodically", async () => {
  await using world = await World.open({ lookMs: 30 * SECOND });
  await schedule(world, "app:note", "a", 60 * 60 * SECOND);
  for (let look = 0; look < 3; look++) {
    assert((world.clock.nextAt ?? Infinity) - world.clock.now() <= 30 * SECOND);
    await world.advance(30 * SECOND);
  }
});

Deno.test("ended jobs are kept for seven days and then deleted in batches", async () => {
  await using world = await World.open();
  const count = schedulerLimits.rowsCleanedMax * 2 + 10;
  const texts = Array.from({ length: count }, (_, i) => `${i}`);
  await world.mutate("app:scheduleMany", { texts, at: world.clock.now() });
  await schedule(world, "app:note", "much later", 30 * DAY);
  await world.quiet();
  const clean = () =>
    world.system("_system/scheduler:clean", {
      before: world.clock.now() - schedulerLimits.resultKeptMs,
    });
  world.clock.moveTo(world.clock.now() + schedulerLimits.resultKeptMs);
  assert.equal(await clean(), false);
  assert.equal((await jobs(world)).length, count + 1);
  world.clock.moveTo(world.clock.now() + 1);
  assert.deepEqual([await clean(), await clean(), await clean()], [true, true, false]);
  assert.deepEqual((await jobs(world)).map(({ args }) => args.text), ["much later"]);
});

Deno.test("app code can read jobs but not write them", async () => {
  await using world = await World.open();
  const id = await schedule(world, "app:note", "a", DAY);
  assert.equal((await world.query("app:job", { id }) as { name: string }).name, "app:note");
  await assert.rejects(world.mutate("app:removeJob", { id }), /_scheduled_functions.*cannot write/);
});

const mistakes: Record<string, readonly [args: Record<string, unknown>, message: RegExp]> = {
  "a query": [{ path: "app:texts", when: 0 }, /"app:texts" is a query: only mutations and actions/],
  "an unknown function": [{ path: "app:gone", when: 0 }, /There is no function "app:gone" to schedule/],
  "a function of the service": [
    { path: "_system/scheduler:interrupt", when: 0 },
    /There is no function "_system\/scheduler:interrupt" to schedule/,
  ],
  "a function behind ctx": [{ path: "_ctx/scheduler:cancel", when: 0 }, /There is no function/],
  "a negative delay": [{ path: "app:note", args: { text: "a" }, when: -1 }, /milliseconds from 0 on, not -1/],
  "arguments that do not fit": [{ path: "app:note", args: { text: 1 }, when: 0 }, /app:note: args\.text/],
  "too far ahead": [{ path: "app:note", args: { text: "a" }, when: 6 * 366 * DAY }, /five years/],
  "arguments that are too large": [
    { path: "app:note", args: { text: "x".repeat(schedulerLimits.argsCharsMax) }, when: 0 },
    /store what is large and pass its id/,
  ],
};

for (const [name, [args, message]] of Object.entries(mistakes)) {
  Deno.test(`scheduling ${name} is rejected immediately, from mutations and from actions`, async () => {
    await using world = await World.open();
    await assert.rejects(world.mutate("app:schedule", args), message);
    await assert.rejects(world.act("app:scheduleByAction", args), message);
    assert.deepEqual(await jobs(world), []);
  });
}

Deno.test("app code cannot schedule system functions through internals of ctx", async () => {
  await using world = await World.open();
  const job = { name: "_system/scheduler:interrupt", args: {}, scheduledTime: 0, functionKind: "mutation" };
  await assert.rejects(world.system("_ctx/scheduler:schedule", job), /function not found/);
  await assert.rejects(world.mutate("_ctx/scheduler:schedule", job), /There is no function/);
});

Deno.test("an invalid job ID cannot be canceled", async () => {
  await using world = await World.open();
  await assert.rejects(
    world.mutate("app:cancel", { id: "nothing" }),
    /expects the ID of a scheduled function/,
  );
});

Deno.test("[PG8] when another server takes over, a stop aborts actions even if none seems to run", async () => {
  const never = () => Promise.reject(new Error("Nothing is called"));
  let ends = 0;
  const scheduler = new Scheduler({
    port: { mutate: never, query: never, act: never },
    appCrons: () => [],
    clock: steadyClock,
    log() {},
    // An action that timed out may still be running.
    actions: { mayBegin: () => true, end: () => Promise.resolve(void ends++) },
  });
  await scheduler[Symbol.asyncDispose]();
  assert.equal(ends, 1);
});
