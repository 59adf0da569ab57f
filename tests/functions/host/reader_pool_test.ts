import assert from "node:assert/strict";
import { functionLimits } from "../../../mod/limits.ts";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { unknownReads } from "../../../mod/functions/host_port.ts";
import type { FakeIsolate } from "./support/fake_isolate.ts";
import { settled } from "../../support/fake_clock.ts";
import { lastGoOf, queriesOf, ReaderWorld } from "./support/reader_world.ts";

async function started(options: { readonly readers?: number; readonly cores?: number } = {}) {
  const world = new ReaderWorld(options);
  await world.runFirst("first");
  // Each slow query that leaves no reader free starts another one.
  for (let i = 1; i < (options.readers ?? 1); i++) {
    const batches = world.readers.map(() => world.batch("slow"));
    for (const reader of world.readers) world.pins(reader, 1);
    for (const reader of world.readers) reader.noted = { position: 0, startedAt: i };
    await world.clock.advance(3 * isolateLimits.slowQueryMs);
    for (const reader of world.readers.slice(0, i)) world.answers(reader, 0, 1);
    assert.ok(batches.every(({ results }) => results.length === 1));
    assert.equal(world.readers.length, i + 1);
    for (const reader of world.readers) reader.noted = null;
  }
  world.freed = 0;
  return world;
}

/** The first query a reader has now; `undefined` when it was sent none. */
function queriesOfNewest(reader: FakeIsolate): string | undefined {
  return reader.sent.some(({ type }) => type === "RunQueryBatch") ? queriesOf(reader)[0] : undefined;
}

const many = (count: number) => Array.from({ length: count }, (_, i) => `q${i}`);

Deno.test("a batch is pinned, answered and finished, with its snapshot's ts", async () => {
  const world = await started();
  assert.ok(world.pool.free);
  const batch = world.batch("a", "b");
  assert.equal(world.pool.free, false);
  world.pins(world.reader(0), 5);
  await settled();
  assert.deepEqual([batch.pinnedAt, batch.results], [5, []]);
  world.answers(world.reader(0), 0, 1);
  assert.deepEqual(batch.results, ["a@5"]);
  assert.equal(world.freed, 0);
  world.answers(world.reader(0), 1, 1);
  await settled();
  assert.deepEqual([batch.results, batch.over, world.pool.free, world.freed], [
    ["a@5", "b@5"],
    true,
    true,
    1,
  ]);
});

Deno.test("an empty run ends immediately, at main's ts", async () => {
  const world = await started();
  const batch = world.batch();
  await settled();
  assert.deepEqual([batch.pinnedAt, batch.over, world.pool.free], [1, true, true]);
});

Deno.test("a result newer than main's commits waits for the commits it contains", async () => {
  const world = await started();
  const batch = world.batch("a");
  world.finds(world.reader(0), 3);
  world.answers(world.reader(0), 0, 1);
  await settled();
  assert.deepEqual([batch.pinnedAt, batch.results, batch.over, world.pool.free], [3, [], false, true]);
  world.pool.published(2);
  assert.deepEqual(batch.results, []);
  world.pool.published(3);
  await settled();
  assert.deepEqual([batch.results, batch.over], [["a@3"], true]);
});

Deno.test("a result whose commits never arrive is returned at the time limit", async () => {
  const world = await started();
  const batch = world.batch("a");
  world.finds(world.reader(0), 3);
  world.answers(world.reader(0), 0, 1);
  await world.clock.advance(9_000);
  assert.deepEqual(batch.results, []);
  await world.clock.advance(2_000);
  assert.deepEqual(batch.results, ["a@3"]);
});

Deno.test("a large batch is distributed over the free readers at one snapshot, a small one uses one", async () => {
  const world = await started({ readers: 3 });
  const batch = world.batch(...many(40));
  assert.deepEqual(world.readers.map((reader) => queriesOf(reader).length), [14, 13, 13]);
  for (const [i, reader] of world.readers.entries()) {
    assert.equal(batch.pinnedAt, null, `before reader ${i}`);
    world.pins(reader, 9);
    await settled();
  }
  assert.deepEqual([world.readers.map(lastGoOf), batch.pinnedAt], [["run", "run", "run"], 9]);
  for (const reader of world.readers) world.answers(reader, 0, queriesOf(reader).length);
  assert.deepEqual(batch.results, many(40).map((path) => `${path}@9`));
  const before = world.readers.map(({ sent }) => sent.length);
  world.batch(...many(16));
  assert.equal(world.readers.filter(({ sent }, i) => sent.length > (before[i] ?? 0)).length, 1);
});

Deno.test("readers of a run that opened different commits open again until they agree", async () => {
  const world = await started({ readers: 3 });
  const batch = world.batch(...many(48));
  for (const [i, reader] of world.readers.entries()) world.pins(reader, 5 + (i % 2));
  assert.deepEqual(lastGoOf(world.reader(0)), "again");
  world.pins(world.reader(0), 6);
  assert.equal(batch.pinnedAt, null);
  world.pins(world.reader(2), 6);
  await settled();
  assert.deepEqual([world.readers.map(lastGoOf), batch.pinnedAt], [["run", "run", "run"], 6]);
  for (const reader of world.readers) world.answers(reader, 0, 16);
  assert.deepEqual(batch.results, many(48).map((path) => `${path}@6`));
});

Deno.test("when commits arrive too fast for the readers, a run uses the reader with the newest snapshot", async () => {
  const world = await started({ readers: 2 });
  const batch = world.batch(...many(32));
  const [a, b] = [world.reader(0), world.reader(1)];
  world.pins(a, 5);
  world.pins(b, 6);
  world.pins(a, 7);
  world.pins(b, 8);
  await settled();
  assert.deepEqual([[a, b].map(lastGoOf), batch.pinnedAt, world.pool.free], [["drop", "run"], 8, true]);
  world.answers(b, 0, 32);
  assert.deepEqual(batch.results, many(32).map((path) => `${path}@8`));
  assert.ok(world.pool.free);
});

Deno.test("a reader that does not open its snapshot is not waited for: its queries go to others", async () => {
  const world = await started({ readers: 2 });
  const batch = world.batch(...many(32));
  world.pins(world.reader(0), 5);
  await world.clock.advance(6 * isolateLimits.slowQueryMs);
  assert.deepEqual([lastGoOf(world.reader(0)), batch.pinnedAt], ["run", 5]);
  world.answers(world.reader(0), 0, 16);
  await settled();
  const heir = world.readers.find((reader) => reader !== world.reader(1) && queriesOfNewest(reader) === "q1");
  assert.ok(heir !== undefined);
  world.pins(heir, 6);
  world.answers(heir, 0, 16);
  assert.ok(batch.results.every((result) => result !== undefined));
  // A late answer only releases the reader.
  world.pins(world.reader(1), 7);
  assert.equal(lastGoOf(world.reader(1)), "drop");
  await settled();
  assert.ok(batch.over);
});

Deno.test("a batch with more arguments than fit into one message is sent in several", async () => {
  const world = await started();
  const args = { text: "x".repeat(functionLimits.argsCharsMax / 2 - 1_000) };
  const batch = world.batch(...many(5), args);
  const sizes: number[] = [];
  for (let ts = 1; !batch.over && ts < 9; ts++) {
    const count = queriesOf(world.reader(0)).length;
    sizes.push(count);
    world.pins(world.reader(0), ts);
    world.answers(world.reader(0), 0, count);
    await settled();
  }
  assert.deepEqual(sizes, [2, 2, 1]);
  assert.deepEqual([batch.pinnedAt, batch.results], [1, ["q0@1", "q1@1", "q2@2", "q3@2", "q4@3"]]);
});

Deno.test("a run started while no reader is free waits for one", async () => {
  const world = await started();
  world.batch("a");
  const second = world.batch("b");
  world.pins(world.reader(0), 1);
  world.answers(world.reader(0), 0, 1);
  assert.deepEqual(queriesOf(world.reader(0)), ["b"]);
  assert.equal(world.freed, 0, "a reader with work waiting is not free");
  world.pins(world.reader(0), 2);
  world.answers(world.reader(0), 0, 1);
  assert.deepEqual(second.results, ["b@2"]);
});

Deno.test("unanswered queries of a killed reader run again on another, at a newer snapshot", async () => {
  const world = await started();
  const batch = world.batch("a", "b", "c");
  world.pins(world.reader(0), 1);
  world.answers(world.reader(0), 0, 1);
  world.reader(0).noted = { position: 1, startedAt: 1 };
  world.reader(0).dies("killed");
  await settled();
  assert.deepEqual(queriesOf(world.reader(1)), ["b", "c"]);
  world.pins(world.reader(1), 4);
  world.answers(world.reader(1), 0, 2);
  await settled();
  assert.deepEqual([batch.results, batch.pinnedAt, batch.over], [["a@1", "b@4", "c@4"], 1, true]);
});

Deno.test("a run whose reader is lost before its snapshot opens is pinned later", async () => {
  const world = await started();
  const batch = world.batch("a");
  const ready = Promise.withResolvers<void>();
  world.starter.delay = ready.promise;
  world.reader(0).dies("killed");
  await settled();
  assert.equal(batch.pinnedAt, null);
  ready.resolve();
  await settled();
  world.pins(world.reader(1), 3);
  await settled();
  assert.equal(batch.pinnedAt, 3);
});

Deno.test("a batch is pinned when its last part is, though another part was lost", async () => {
  const world = await started({ readers: 2 });
  const batch = world.batch(...many(32));
  world.pins(world.reader(0), 5);
  world.reader(1).dies("killed");
  await settled();
  assert.equal(batch.pinnedAt, 5);
  world.answers(world.reader(0), 0, 16);
  await settled();
  assert.equal(queriesOf(world.reader(0)).length, 16);
  world.pins(world.reader(0), 6);
  world.answers(world.reader(0), 0, 16);
  await settled();
  assert.deepEqual(new Set(batch.results.map((result) => result.split("@")[1])), new Set(["5", "6"]));
  assert.ok(batch.over);
});

Deno.test("a reader lost while it waits for others of its batch lets the others continue", async () => {
  const world = await started({ readers: 2 });
  const batch = world.batch(...many(32));
  world.pins(world.reader(0), 2);
  world.reader(0).dies("killed");
  await settled();
  world.pins(world.reader(1), 2);
  assert.equal(lastGoOf(world.reader(1)), "run");
  world.answers(world.reader(1), 0, 16);
  await settled();
  const heir = world.readers.find((reader) => !reader.dead && queriesOfNewest(reader) === "q0");
  assert.ok(heir !== undefined);
  world.pins(heir, 3);
  world.answers(heir, 0, 16);
  await settled();
  assert.ok(batch.over);
});

Deno.test("a crash fails the query that was running, with an unknown read set", async () => {
  const world = await started();
  const batch = world.batch("a", "b");
  world.pins(world.reader(0), 3);
  world.reader(0).noted = { position: 0, startedAt: 1 };
  world.reader(0).dies("crashed", "out of memory");
  await settled();
  assert.deepEqual(batch.results, ["internal: The query ended its isolate (out of memory)@3"]);
  assert.deepEqual([batch.answers[0]?.readSet, batch.answers[0]?.scope], [unknownReads, "session"]);
  assert.deepEqual(queriesOf(world.reader(1)), ["b"]);
});

Deno.test("a query fails after three lost readers", async () => {
  const world = await started();
  const batch = world.batch("a", "b");
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(batch.results, []);
    const reader = world.reader(i);
    world.pins(reader, 1);
    reader.noted = { position: 0, startedAt: i };
    reader.dies("killed", "killed from outside");
    await settled();
  }
  assert.deepEqual(batch.results, ["internal: The query ended its isolate (killed from outside)@1"]);
  assert.deepEqual(queriesOf(world.reader(3)), ["b"]);
});

Deno.test("a query over its time limit ends the reader and returns the error", async () => {
  const world = await started();
  const batch = world.batch("a");
  world.pins(world.reader(0), 1);
  world.reader(0).noted = { position: 0, startedAt: 1 };
  await world.clock.advance(functionLimits.queryTimeoutMs);
  assert.deepEqual(batch.results, []);
  await world.clock.advance(3 * isolateLimits.slowQueryMs);
  assert.deepEqual(batch.results, ["internal: The query took longer than 30 s@1"]);
  assert.ok(world.reader(0).dead);
  assert.ok(world.pool.free);
});

Deno.test("a reader that never opens its snapshot is ended long before a query's time limit", async () => {
  const world = await started();
  const batch = world.batch("a");
  await world.clock.advance(functionLimits.mutationTimeoutMs + 1_000);
  assert.ok(world.reader(0).dead);
  const other = world.readers.find(({ dead, sent }) => !dead && sent.length > 0);
  assert.ok(other !== undefined);
  world.pins(other, 2);
  world.answers(other, 0, 1);
  assert.deepEqual(batch.results, ["a@2"]);
});

Deno.test("queries behind a slow one are run by another reader, and late duplicates are dropped", async () => {
  const world = await started();
  const batch = world.batch("slow", "b", "c");
  world.pins(world.reader(0), 1);
  world.reader(0).noted = { position: 0, startedAt: 1 };
  await world.clock.advance(3 * isolateLimits.slowQueryMs);
  assert.deepEqual(queriesOf(world.reader(1)), ["b", "c"]);
  world.pins(world.reader(1), 2);
  world.answers(world.reader(1), 0, 1);
  assert.deepEqual(batch.results[1], "b@2");
  // The slow one ends, and its reader continues with the reassigned calls.
  world.answers(world.reader(0), 0, 3);
  await settled();
  assert.deepEqual([batch.results, batch.over], [["slow@1", "b@2", "c@1"], true]);
  world.answers(world.reader(1), 1, 1);
  assert.deepEqual(batch.results[2], "c@1");
  assert.ok(world.pool.free);
});

Deno.test("no more than the allowed readers are started, however many queries are slow", async () => {
  const world = await started();
  for (let i = 0; i < 10; i++) {
    world.batch("slow");
    for (const reader of world.readers) {
      if (reader.noted !== null || reader.sent.length === 0) continue;
      world.pins(reader, 1);
      reader.noted = { position: 0, startedAt: i };
    }
    await world.clock.advance(200);
  }
  const alive = world.readers.filter(({ dead }) => !dead);
  assert.ok(alive.length <= isolateLimits.readersMax, `${alive.length}`);
  assert.ok(alive.some(({ noted }) => noted === null), "one is always left for what is quick");
});

Deno.test("FA4 slow queries never use the last reader, and are scheduled fairly", async () => {
  const world = await started();
  const by = (queueKey: string) => ({ queueKey, blame: queueKey });
  world.batch("slow", { caller: by("a") });
  world.pins(world.reader(0), 1);
  world.reader(0).noted = { position: 0, startedAt: 1 };
  await world.clock.advance(3 * isolateLimits.slowQueryMs);
  assert.equal(world.readers.length, 2);
  assert.ok(world.pool.isSlow({ udfPath: "slow", caller: by("a") }));
  // Two are reserved for it, so the second stays free for fast queries.
  assert.equal(world.pool.slowFree(), false);
  await settled();
  assert.equal(world.readers.length, 3);
  assert.ok(world.pool.slowFree());
  const more = [
    world.slowBatch("slow", by("a")),
    world.slowBatch("slow", by("a")),
    world.slowBatch("slow", by("b")),
  ];
  await settled();
  const busy = () => world.readers.filter((reader) => queriesOfNewest(reader) === "slow").length;
  assert.equal(busy(), 3, "a fourth reader came for the next");
  assert.equal(world.readers.length, isolateLimits.readersMax);
  const quick = world.batch("quick");
  const last = world.readers.find((reader) => queriesOfNewest(reader) === "quick");
  assert.ok(last !== undefined);
  world.pins(last, 2);
  world.answers(last, 0, 1);
  assert.deepEqual(quick.results, ["quick@2"]);
  assert.ok(more.every(({ over }) => !over));
  for (const reader of world.readers.slice(0, 2)) {
    if (reader === last || reader.sent.length === 0) continue;
    if (reader !== world.reader(0)) world.pins(reader, 3);
    world.answers(reader, 0, 1);
  }
  await settled();
  assert.equal(busy(), 3);
});

Deno.test("a reader that is busy nearly all the time gets help, up to one reader for each processor", async () => {
  const world = await started({ cores: 2 });
  for (let i = 0; i < 400; i++) {
    for (const [number, reader] of world.readers.entries()) {
      world.batch("a");
      if (reader.sent.length === 0) continue;
      world.pins(reader, 1);
      await world.clock.advance(number === 0 ? 9 : 0);
      world.answers(reader, 0, 1);
    }
    await world.clock.advance(1);
  }
  assert.equal(world.readers.length, 2);
});

Deno.test("the first query starts a reader, and waits for it", async () => {
  const world = new ReaderWorld();
  await settled();
  assert.equal(world.starter.starts, 0);
  assert.ok(world.pool.free);
  const starting = Promise.withResolvers<void>();
  world.starter.delay = starting.promise;
  const first = world.batch("a");
  const second = world.slowBatch("b", { queueKey: "x", blame: "x" });
  assert.deepEqual([world.starter.starts, world.pool.free], [1, false]);
  // A start is no sign of slow queries, however long it takes.
  await world.clock.advance(5_000);
  assert.equal(world.pool.hasSlowQueries, false);
  world.starter.delay = Promise.resolve();
  starting.resolve();
  await settled();
  world.pins(world.reader(0), 2);
  world.answers(world.reader(0), 0, 1);
  assert.deepEqual([first.results, second.results], [["a@2"], []]);
  assert.equal(world.readers.length, 2, "a slow query does not take the only reader");
  assert.deepEqual(queriesOf(world.reader(0)), ["b"]);
});

Deno.test("a reader is prepared once, and ends if no query arrives", async () => {
  const world = new ReaderWorld();
  for (let i = 0; i < 3; i++) world.pool.prepare();
  await settled();
  world.pool.prepare();
  await world.clock.advance(300_000);
  assert.deepEqual(world.readers.map(({ dead }) => dead), [false]);
  await world.clock.advance(400_000);
  assert.deepEqual([world.readers.map(({ dead }) => dead), world.clock.timers], [[true], 0]);
});

Deno.test("readers end when idle, the last one long after the last query, and leave no timer", async () => {
  const world = await started({ readers: 3 });
  const alive = () => world.readers.filter(({ dead }) => !dead).length;
  await world.clock.advance(3 * isolateLimits.readerIdleMs);
  // Queries were slow a short time ago.
  assert.equal(alive(), 2);
  await world.clock.advance(5 * isolateLimits.readerIdleMs);
  const reader = world.readers.find(({ dead }) => !dead) ?? assert.fail();
  world.batch("a");
  world.pins(reader, 1);
  world.answers(reader, 0, 1);
  await world.clock.advance(5 * isolateLimits.readerIdleMs);
  assert.equal(alive(), 1);
  await world.clock.advance(600_000);
  assert.equal(alive(), 0);
  assert.equal(world.clock.timers, 0);
  assert.ok(world.pool.free);
  assert.deepEqual(world.warnings, []);
});

Deno.test("after a reader has died while idle, the next query starts another one", async () => {
  const world = await started();
  world.reader(0).dies("crashed");
  await settled();
  assert.equal(world.readers.length, 1);
  assert.ok(world.pool.free);
  const batch = world.batch("a");
  await settled();
  world.pins(world.reader(1), 2);
  world.answers(world.reader(1), 0, 1);
  assert.deepEqual(batch.results, ["a@2"]);
});

Deno.test("while no reader can be started tries become rare, and queries get an error in the end", async () => {
  const world = await started();
  const batch = world.batch("a");
  world.starter.broken = "nonsense";
  world.reader(0).dies("killed");
  await world.clock.advance(20_000);
  assert.deepEqual(batch.results, []);
  assert.ok(world.starter.starts > 3 && world.starter.starts < 15, `${world.starter.starts} starts`);
  await world.clock.advance(isolateLimits.startMs);
  assert.deepEqual(batch.results, ["internal: The app cannot be started: nonsense@1"]);
  world.starter.broken = null;
  await world.clock.advance(5_000);
  assert.ok(world.pool.free);
});

Deno.test("slow queries get an error as well while no reader can be started", async () => {
  const world = await started({ readers: 2 });
  const batch = world.slowBatch("a", { queueKey: "x", blame: "x" });
  world.starter.broken = "nonsense";
  for (const reader of world.readers) reader.dies("killed");
  await world.clock.advance(20_000);
  assert.deepEqual(batch.results, []);
  await world.clock.advance(isolateLimits.startMs);
  assert.deepEqual(batch.results, ["internal: The app cannot be started: nonsense@1"]);
});

Deno.test("after replace, new queries use a reader with new code, and the old one finishes", async () => {
  const world = await started();
  const first = world.batch("a");
  world.pins(world.reader(0), 1);
  world.pool.replace();
  const second = world.batch("b");
  await settled();
  assert.deepEqual(queriesOf(world.reader(1)), ["b"]);
  assert.equal(world.reader(0).dead, false);
  world.answers(world.reader(0), 0, 1);
  await settled();
  assert.ok(world.reader(0).dead);
  world.pins(world.reader(1), 2);
  world.answers(world.reader(1), 0, 1);
  assert.deepEqual([first.results, second.results], [["a@1"], ["b@2"]]);
  assert.deepEqual(world.warnings, []);
});

Deno.test("hold waits for the snapshots of running queries, and later queries wait for new code", async () => {
  const world = await started();
  const first = world.batch("a");
  let held = false;
  const holding = world.pool.hold().then(() => held = true);
  await settled();
  assert.equal(held, false, "a snapshot may still be opened");
  world.pins(world.reader(0), 1);
  await holding;
  world.answers(world.reader(0), 0, 1);
  const second = world.batch("b");
  assert.equal(world.pool.free, false);
  world.pool.replace();
  world.pool.release();
  await settled();
  assert.deepEqual([first.results, queriesOf(world.reader(1))], [["a@1"], ["b"]]);
  world.pins(world.reader(1), 2);
  world.answers(world.reader(1), 0, 1);
  assert.deepEqual(second.results, ["b@2"]);
});

Deno.test("hold ends when a reader whose queries were taken over opens its snapshot late", async () => {
  const world = await started({ readers: 2 });
  world.batch(...many(32));
  const [first, late] = [world.reader(0), world.reader(1)];
  world.pins(first, 5);
  await world.clock.advance(6 * isolateLimits.slowQueryMs);
  world.answers(first, 0, 16);
  await settled();
  const heir = world.readers.find((reader) => reader !== late && queriesOfNewest(reader) === "q1");
  world.pins(heir ?? assert.fail(), 6);
  let held = false;
  const holding = world.pool.hold().then(() => held = true);
  await settled();
  assert.equal(held, false, "a snapshot may still be opened");
  world.finds(late, 6);
  assert.equal(lastGoOf(late), "drop");
  await holding;
});

Deno.test("a reader that was starting when the code was replaced ends, and another one runs its queries", async () => {
  const world = new ReaderWorld();
  const batch = world.batch("a");
  world.pool.replace();
  await settled();
  assert.deepEqual(world.readers.map(({ dead }) => dead), [true, false]);
  world.pins(world.reader(1), 2);
  world.answers(world.reader(1), 0, 1);
  assert.deepEqual(batch.results, ["a@2"]);
});

Deno.test("a reader that was prepared when the code was replaced is started again", async () => {
  const world = new ReaderWorld();
  world.pool.prepare();
  world.pool.replace();
  await settled();
  assert.deepEqual(world.readers.map(({ dead }) => dead), [true, false]);
});

Deno.test("after replace, a reader with new code starts although old ones use every slot", async () => {
  const world = await started({ readers: isolateLimits.readersMax });
  world.batch(...many(16 * isolateLimits.readersMax));
  assert.equal(world.readers.length, isolateLimits.readersMax);
  world.pool.replace();
  const batch = world.batch("b");
  await settled();
  const reader = world.reader(isolateLimits.readersMax);
  assert.deepEqual(queriesOf(reader), ["b"]);
  world.pins(reader, 2);
  world.answers(reader, 0, 1);
  assert.deepEqual(batch.results, ["b@2"]);
});

Deno.test("a reader that was starting when the pool closed ends without an error", async () => {
  for (const broken of [null, "The server is stopping"]) {
    const world = new ReaderWorld();
    const batch = world.batch("a");
    world.starter.broken = broken;
    await world.pool.close();
    await settled();
    assert.match(String(batch.results), /stopping/);
    assert.ok(world.readers.every(({ dead }) => dead));
    assert.deepEqual(world.warnings, []);
  }
});

for (
  const [what, sends] of Object.entries<(world: ReaderWorld) => void>({
    "answers before the snapshot is open": (world) => world.answers(world.reader(0), 0, 1),
    "answers of another batch": (world) => {
      world.pins(world.reader(0), 1);
      world.reader(0).sends({ type: "QueryBatchAnswers", batch: 77, from: 0, answers: [], last: false });
    },
    "answers from the middle": (world) => {
      world.pins(world.reader(0), 1);
      world.answers(world.reader(0), 1, 1);
    },
    "a second snapshot": (world) => {
      world.pins(world.reader(0), 1);
      world.pins(world.reader(0), 2);
    },
    "a group": (world) =>
      world.reader(0).sends({
        type: "Group",
        batch: "b",
        from: 0,
        answers: [],
        tables: [],
        entries: [],
        ts: 1,
      }),
  })
) {
  Deno.test(`${what} from a reader: it is ended and the batch runs again`, async () => {
    const world = await started();
    const batch = world.batch("a", "b");
    sends(world);
    assert.ok(world.reader(0).dead);
    await settled();
    world.pins(world.reader(1), 4);
    world.answers(world.reader(1), 0, 2);
    assert.deepEqual(batch.results, ["a@4", "b@4"]);
  });
}

Deno.test("a query with an invalid result gets an error after three readers, the others of its batch their results", async () => {
  const world = await started();
  const batch = world.batch("a", "bad", "c");
  const answered = new Set<unknown>();
  for (let i = 0; i < 20 && !batch.over; i++) {
    for (const reader of world.readers) {
      const asked = reader.sent.findLast(({ type }) => type === "RunQueryBatch");
      if (reader.dead || asked === undefined || answered.has(asked)) continue;
      answered.add(asked);
      world.pins(reader, 1);
      // Like a real one, it records nothing after the answers are sent.
      if (queriesOf(reader).includes("bad")) {
        const { batch } = reader.last("RunQueryBatch");
        reader.sends({ type: "QueryBatchAnswers", batch, from: 0, answers: "HACK" as never, last: true });
      } else world.answers(reader, 0, queriesOf(reader).length);
    }
    await world.clock.advance(200);
  }
  assert.equal(batch.results[0], "a@1");
  assert.match(
    String(batch.results[1]),
    /^internal: The query ended its isolate \(Answers .* were not awaited\)@1$/,
  );
  assert.equal(batch.results[2], "c@1");
  assert.equal(world.readers.filter(({ dead }) => dead).length, 3);
});

for (
  const [what, frame] of Object.entries<[object, string[]]>({
    "without a value": [{ value: 0, logLines: [] }, []],
    "of an empty value": [{ value: 0, logLines: [] }, [""]],
    "without log lines": [{ value: 0, logLines: "HACK" }, ["1"]],
  })
) {
  Deno.test(`a result ${what} ends the reader, and finally the query`, async () => {
    const world = await started();
    const batch = world.batch("a");
    for (let i = 0; i < 3; i++) {
      const reader = world.reader(i);
      assert.deepEqual(batch.results, []);
      world.pins(reader, 1);
      const [outcome, segments] = frame;
      const answer = {
        outcome: outcome as never,
        readSet: {},
        scope: "nothing",
        nondeterministic: false,
      } as const;
      const answers = [{ ...answer, durationMs: 1 }];
      const { batch: number } = reader.last("RunQueryBatch");
      reader.sends({ type: "QueryBatchAnswers", batch: number, from: 0, answers, last: true }, segments);
      assert.ok(reader.dead);
      await world.clock.advance(1_000);
    }
    assert.match(String(batch.results), /^internal: The query ended its isolate /);
  });
}

Deno.test("close answers pending queries, ends the readers and leaves no timer", async () => {
  const world = await started({ readers: 2 });
  const batches = [world.batch("a"), world.batch("b"), world.batch("c")];
  world.pins(world.reader(0), 1);
  await world.pool.close();
  await settled();
  for (const { results, over } of batches) {
    assert.match(String(results), /stopping/);
    assert.ok(over);
  }
  assert.ok(world.readers.every(({ dead }) => dead));
  assert.equal(world.clock.timers, 0);
});
