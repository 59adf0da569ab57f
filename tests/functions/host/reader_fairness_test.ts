/** Slow or possibly slow queries leave a reader free for fast ones. */
import assert from "node:assert/strict";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { SchedulingDelay } from "../../../mod/functions/host/readers/scheduling_delay.ts";
import type { FakeIsolate } from "./support/fake_isolate.ts";
import { settled } from "../../support/fake_clock.ts";
import { queriesOf, ReaderWorld } from "./support/reader_world.ts";

const { slowQueryMs, suspectQueryMs, spareReaderMs } = isolateLimits;
const by = (name: string) => ({ queueKey: name, blame: name });
const asks = (udfPath: string, name: string) => ({ udfPath, caller: by(name) });

/** A pool with two idle readers. */
async function two(): Promise<ReaderWorld> {
  const world = new ReaderWorld({ spare: true });
  await world.runFirst("first");
  await world.clock.advance(spareReaderMs);
  await settled();
  assert.equal(world.readers.length, 2);
  return world;
}

/** A reader opens the snapshot of its batch and answers all queries. */
function finish(world: ReaderWorld, reader: FakeIsolate): void {
  world.pins(reader, 1);
  world.answers(reader, 0, queriesOf(reader).length);
}

/** A reader has opened its snapshot and runs the first of its queries, which does not end. */
function stands(world: ReaderWorld, reader: FakeIsolate): void {
  world.pins(reader, 1);
  reader.noted = { position: 0, startedAt: world.clock.now() };
}

Deno.test("FA4 a spare reader is started with the first queries, and ends after a time without any", async () => {
  const world = await two();
  await world.clock.advance(5 * isolateLimits.readerIdleMs);
  assert.deepEqual(world.readers.map(({ dead }) => dead), [false, false]);
  await world.clock.advance(600_000);
  assert.ok(world.readers.every(({ dead }) => dead));
  assert.equal(world.clock.timers, 0);
});

Deno.test("FA4 queries of the service start no spare reader", async () => {
  const world = new ReaderWorld({ spare: true });
  await world.runFirst("_system/scheduler:pending");
  await world.clock.advance(spareReaderMs);
  await settled();
  assert.equal(world.readers.length, 1);
});

Deno.test("FA4 queries of a function without known durations run one at a time for each caller", async () => {
  const world = await two();
  assert.equal(world.pool.hasSlowQueries, false);
  world.batch("new", { caller: by("a") });
  assert.ok(world.pool.hasSlowQueries);
  assert.ok(world.pool.isSlow(asks("new", "a")), "the next one would take the last reader");
  assert.ok(!world.pool.slowFree());
  assert.ok(!world.pool.isSlow(asks("new", "b")) && !world.pool.isSlow(asks("other", "a")));
  finish(world, world.reader(0));
  await settled();
  assert.ok(!world.pool.isSlow(asks("new", "a")));
  // It was quick: two of them may run now, until one is stuck.
  world.batch("new", { caller: by("a") });
  assert.ok(!world.pool.isSlow(asks("new", "a")));
  stands(world, world.reader(0));
  await world.clock.advance(suspectQueryMs);
  assert.ok(world.pool.isSlow(asks("new", "a")));
  assert.equal(world.starter.starts, 2, "nothing was started for what may be slow");
});

Deno.test("FA4 a function that was slow for one caller counts as slow for callers without a fast run of it", async () => {
  const world = await two();
  world.batch("search", { caller: by("quick") });
  finish(world, world.reader(0));
  await settled();
  const batch = world.batch("search", { caller: by("a") });
  stands(world, world.reader(0));
  await world.clock.advance(2 * slowQueryMs + slowQueryMs / 2);
  assert.deepEqual(
    ["a", "b", "quick"].map((name) => world.pool.isSlow(asks("search", name))),
    [true, true, false],
  );
  world.answers(world.reader(0), 0, 1);
  await batch.done;
  // Runs that are quick again, for any caller, restore the function's name.
  for (let n = 0; n < 5; n++) {
    world.batch("search", { caller: by("quick") });
    finish(world, world.reader(0));
    await settled();
  }
  assert.ok(!world.pool.isSlow(asks("search", "b")));
});

Deno.test("a query that was quick for its caller so far is not slow for standing still a moment", async () => {
  const world = await two();
  world.batch("look", { caller: by("a") });
  finish(world, world.reader(0));
  await settled();
  const batch = world.batch("look", "other", { caller: by("a") });
  stands(world, world.reader(0));
  await world.clock.advance(2 * slowQueryMs);
  assert.deepEqual(queriesOf(world.reader(1)), ["other"], "what is behind it does not wait");
  assert.ok(!world.pool.isSlow(asks("look", "b")), "others need not think so either");
  world.answers(world.reader(0), 0, 1);
  finish(world, world.reader(1));
  world.answers(world.reader(0), 1, 1);
  await batch.done;
  world.batch("look", { caller: by("a") });
  stands(world, world.reader(0));
  await world.clock.advance(5 * slowQueryMs);
  assert.ok(world.pool.isSlow(asks("look", "a")));
});

Deno.test("FA4 names without a function are not recorded, for any caller", async () => {
  const world = await two();
  for (const name of ["look", "nobody:knows"]) {
    world.batch(name, { caller: by("a") });
    finish(world, world.reader(0));
    await settled();
    const batch = world.batch(name, { caller: by("a") });
    stands(world, world.reader(0));
    assert.equal(world.pool.isSlow(asks(name, "a")), name !== "look", name);
    world.answers(world.reader(0), 0, 1);
    await batch.done;
  }
});

Deno.test("FA4 functions known to be fast run before unknown ones", async () => {
  const world = await two();
  const known = world.batch("look");
  finish(world, world.reader(0));
  await known.done;
  world.batch("new", "newer", "look");
  assert.deepEqual(queriesOf(world.reader(0)), ["look", "new", "newer"]);
});

Deno.test("FA4 calls queued behind a slow query are sent to another reader within 100 ms", async () => {
  const world = await two();
  world.batch("slow", "quick");
  stands(world, world.reader(0));
  await world.clock.advance(slowQueryMs + slowQueryMs / 2);
  assert.deepEqual(queriesOf(world.reader(1)), ["quick"]);
});

Deno.test("time in which the machine did not run the process does not count as slow", () => {
  let now = 0;
  const lateness = new SchedulingDelay(() => now);
  assert.equal(lateness.ms, 0);
  lateness.timerSet(25);
  now = 20;
  assert.equal(lateness.ms, 0);
  now = 85;
  assert.equal(lateness.ms, 60, "also before the timer has its turn");
  lateness.timerFired();
  now = 500;
  assert.equal(lateness.ms, 60, "no lateness is known without a timer");
  lateness.timerSet(25);
  now = 535;
  lateness.timerFired();
  assert.equal(lateness.ms, 70);
});
