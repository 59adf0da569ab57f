import assert from "node:assert/strict";
import { functionLimits } from "../../../mod/limits.ts";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { settled } from "../../support/fake_clock.ts";
import { resultOf, WriterWorld } from "./support/writer_world.ts";

async function started(): Promise<WriterWorld> {
  const world = new WriterWorld();
  await world.writer.start();
  return world;
}

Deno.test("calls of one task share a batch, in their order", async () => {
  const world = await started();
  for (const path of ["a", "b", "c"]) world.mutate(path);
  await settled();
  assert.deepEqual(world.batch, ["a", "b", "c"]);
});

Deno.test("a lone call is sent in its own task, without a timer", async () => {
  const world = await started();
  world.mutate("a");
  assert.equal(world.clock.timers, 0);
  await Promise.resolve();
  assert.deepEqual(world.batch, ["a"]);
  world.commits(0, 1, 1);
  await world.clock.advance(isolateLimits.watchIntervalMs);
  assert.equal(world.clock.timers, 0, "a timer was left behind");
});

Deno.test("calls that arrive while a batch is running wait for its end and are then sent together", async () => {
  const world = await started();
  world.mutate("a");
  await settled();
  for (const path of ["b", "c"]) world.mutate(path);
  await settled();
  assert.equal(world.batches, 1);
  world.commits(0, 1, 1);
  await settled();
  assert.deepEqual(world.batch, ["b", "c"]);
});

Deno.test("the next batch is sent during the commit of the one before it, with all calls that wait at that time", async () => {
  const world = await started();
  world.mutate("a");
  await settled();
  for (const path of ["b", "c"]) world.mutate(path);
  world.committing();
  assert.deepEqual(world.batch, ["b", "c"]);
  world.mutate("d");
  await settled();
  assert.equal(world.batches, 2, "a third batch was sent");
  world.commits(0, 1, 1, 0);
  await settled();
  assert.deepEqual(world.reported, ["commit 1", "answer a"]);
  assert.equal(world.batches, 2, "a third batch was sent");
  world.commits(0, 2, 3, 1);
  await settled();
  assert.deepEqual(world.reported.slice(2), ["commit 2", "commit 3", "answer b", "answer c"]);
  assert.deepEqual(world.batch, ["d"]);
});

Deno.test("a batch sent ahead and the one being committed share the limit", async () => {
  const world = await started();
  for (const path of ["a", "b", "c"]) world.mutate(path);
  await settled();
  for (const path of ["d", "e", "f", "g", "h", "i"]) world.mutate(path);
  world.committing();
  assert.deepEqual(world.batch, ["d", "e", "f", "g", "h"]);
  world.commits(0, 3, 1, 0);
  for (const path of ["j", "k", "l"]) world.mutate(path);
  world.committing();
  assert.deepEqual(world.batch, ["i", "j", "k", "l"]);
});

Deno.test("no batch is sent ahead when nothing waits, or before a replacement", async () => {
  const world = await started();
  world.mutate("a");
  await settled();
  world.committing();
  assert.equal(world.batches, 1);
  world.mutate("b");
  world.commits(0, 1, 1);
  await settled();
  assert.deepEqual(world.batch, ["b"]);
  world.mutate("c");
  const replaced = world.writer.replace(() => Promise.resolve());
  const old = world.isolate;
  world.committing();
  world.commits(0, 1, 2);
  await replaced;
  await settled();
  assert.ok(old.dead && old.last("Batch").calls[0]?.udfPath === "b");
  assert.deepEqual(world.batch, ["c"]);
});

Deno.test("the wait for a lone call starts with its batch and ends with its response or its writer", async () => {
  const world = await started();
  world.mutate("a");
  await settled();
  assert.deepEqual(world.waits, ["wait"]);
  world.mutate("b");
  world.committing();
  assert.deepEqual(world.waits, ["wait"], "the batch that was sent ahead has not begun");
  world.commits(0, 1, 1, 0);
  assert.deepEqual(world.waits.splice(0), ["wait", "over", "wait"]);
  for (const path of ["c", "d"]) world.mutate(path);
  world.commits(0, 1, 2, 1);
  await settled();
  assert.deepEqual(world.batch, ["c", "d"]);
  assert.deepEqual(world.waits.splice(0), ["over"], "two calls are not a lone one");
  world.isolate.dies("killed");
  await settled();
  assert.equal(world.waits[0], "over");
});

Deno.test("commits are published before their responses resolve, group by group", async () => {
  const world = await started();
  for (const path of ["a", "b", "c"]) world.mutate(path);
  await settled();
  world.commits(0, 2, 2);
  await settled();
  assert.deepEqual(world.reported, ["commit 1", "commit 2", "answer a", "answer b"]);
  world.commits(2, 1, 3);
  await settled();
  assert.deepEqual(world.reported.slice(4), ["commit 3", "answer c"]);
});

Deno.test("an answer has the result, the ts and the log lines the writer gave", async () => {
  const world = await started();
  const answer = world.mutate("a");
  await settled();
  const { batch } = world.isolate.last("Batch");
  world.isolate.sends({
    type: "Group",
    batch,
    from: 0,
    answers: [[7, 0, ["[INFO] hello"], true]],
    tables: [],
    entries: [],
    ts: 9,
  }, ['{"n":1}']);
  assert.deepEqual(await answer, {
    outcome: { ok: true, value: '{"n":1}', logLines: ["[INFO] hello"] },
    ts: 7,
    replayed: true,
  });
});

Deno.test("the call's original text is sent, including the replay key", async () => {
  const world = await started();
  const args = { n: 1 };
  world.mutate("a", { args, replay: { sessionId: "s", requestId: 3 } });
  args.n = 2;
  await settled();
  const [sent] = world.isolate.last("Batch").calls;
  assert.deepEqual(sent?.args, { n: 1 });
  assert.deepEqual(sent?.replay, { sessionId: "s", requestId: 3 });
});

Deno.test("arguments that are not JSON are an args error of that call only", async () => {
  const world = await started();
  assert.match(String(resultOf(await world.mutate("a", { args: { n: 1n } }))), /^args: .*not JSON/);
  world.mutate("b");
  await settled();
  assert.deepEqual(world.batch, ["b"]);
});

Deno.test("a full queue refuses more calls immediately and accepts calls again when it has room", async () => {
  const world = await started();
  world.mutate("first");
  await settled();
  for (let i = 0; i < isolateLimits.queuedMutationsMax; i++) world.mutate("waiting");
  assert.match(String(resultOf(await world.mutate("late"))), /^internal: The server is overloaded/);
  world.commits(0, 1, 1);
  await settled();
  assert.equal(world.batch.length, isolateLimits.batchCallsMax);
  let refused = false;
  world.mutate("again").then(() => refused = true);
  await settled();
  assert.equal(refused, false);
});

Deno.test("a queue full of characters refuses more calls", async () => {
  const world = await started();
  world.mutate("first");
  await settled();
  const args = { text: "x".repeat(isolateLimits.queuedMutationCharsMax / 16) };
  for (let i = 0; i < 15; i++) world.mutate("large", { args });
  assert.match(String(resultOf(await world.mutate("late", { args }))), /overloaded/);
});

Deno.test("a batch contains at most the maximum number of characters, and at least one call", async () => {
  const world = await started();
  const args = { text: "x".repeat(isolateLimits.batchCharsMax / 2) };
  for (let i = 0; i < 3; i++) world.mutate("large", { args });
  world.mutate("huge", { args: { text: "x".repeat(isolateLimits.batchCharsMax * 2) } });
  await settled();
  const sizes: number[] = [];
  for (let ts = 0; ts < 4;) {
    sizes.push(world.batch.length);
    ts += world.batch.length;
    world.commits(0, world.batch.length, ts);
    await settled();
  }
  assert.deepEqual(sizes, [1, 1, 1, 1]);
});

Deno.test("slow calls make batches small, fast ones make them large again", async () => {
  const world = await started();
  let ts = 0;
  const sizes: number[] = [];
  let i = 0;
  for (; i < 1_500; i++) world.mutate("a");
  for (const ms of [10, 10, 10, 10, 10, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01]) {
    await settled();
    const calls = world.batch.length;
    sizes.push(calls);
    world.isolate.noted = { position: null, startedAt: i++ };
    await world.clock.advance(calls * ms);
    world.commits(0, calls, ts += calls);
  }
  assert.equal(sizes[0], isolateLimits.batchCallsMax);
  const fitting = isolateLimits.batchSliceMs / 10;
  assert.ok((sizes[5] ?? Infinity) <= 2 * fitting, `${sizes}`);
  assert.ok((sizes.at(-1) ?? 0) >= 20, `${sizes}`);
});

Deno.test("close refuses waiting calls, answers running ones, and leaves no timer", async () => {
  const world = await started();
  const out = world.mutate("a");
  await settled();
  const waits = world.mutate("b");
  const closing = world.writer.close();
  assert.match(String(resultOf(await waits)), /stopping/);
  world.commits(0, 1, 1);
  assert.equal(resultOf(await out), "did a");
  await closing;
  assert.match(String(resultOf(await world.mutate("c"))), /stopping/);
  assert.deepEqual([world.isolate.dead, world.clock.timers], [true, 0]);
});

Deno.test("close also answers batches sent ahead, and allows both at most the time limit of a mutation", async () => {
  for (const answers of [true, false]) {
    const world = await started();
    const first = world.mutate("a");
    await settled();
    const second = world.mutate("b");
    world.committing();
    const waits = world.mutate("c");
    const closing = world.writer.close();
    assert.match(String(resultOf(await waits)), /stopping/);
    if (answers) {
      world.commits(0, 1, 1, 0);
      await settled();
      assert.equal(world.isolate.dead, false, "closed before the batch that was sent ahead had ended");
      world.commits(0, 1, 2, 1);
    } else {
      await world.clock.advance(functionLimits.mutationTimeoutMs);
    }
    await closing;
    const expected = answers ? [/did a/, /did b/] : [/^outcome_unknown/, /^outcome_unknown/];
    for (const [i, answer] of [first, second].entries()) {
      assert.match(String(resultOf(await answer)), expected[i] ?? /never/);
    }
    assert.equal(world.clock.timers, 0);
  }
});

Deno.test("close does not wait longer for a batch than a mutation may take", async () => {
  const world = await started();
  const out = world.mutate("a");
  await settled();
  const closing = world.writer.close();
  await world.clock.advance(5_000);
  await closing;
  assert.match(String(resultOf(await out)), /^outcome_unknown/);
  assert.equal(world.clock.timers, 0);
});

Deno.test("FA3 a slow batch returns the rest, which run after calls that others have made since", async () => {
  const world = await started();
  const by = (queueKey: string) => ({ caller: { queueKey, blame: queueKey } });
  for (const path of ["slow", "slow", "slow"]) world.mutate(path, by("a"));
  await settled();
  assert.deepEqual(world.batch, ["slow", "slow", "slow"]);
  world.mutate("quick", by("b"));
  world.sends(0, 1, 1, { uses: [900, 0, 0, 0, 0], ends: true });
  await settled();
  assert.deepEqual(world.batch, ["quick"]);
  world.commits(0, 1, 2);
  await settled();
  // Known to be slow by now, so it is sent alone.
  assert.deepEqual(world.batch, ["slow"]);
  world.sends(0, 1, 3, { uses: [900, 0, 0, 0, 0] });
  await settled();
  world.commits(0, 1, 4);
  await settled();
  const answers = world.reported.filter((reported) => reported.startsWith("answer"));
  assert.deepEqual(answers, ["answer slow", "answer quick", "answer slow", "answer slow"]);
});

Deno.test("close answers calls that the writer has returned", async () => {
  const world = await started();
  const answers = Promise.all(["slow", "slow", "slow"].map((path) => world.mutate(path)));
  await settled();
  const closing = world.writer.close();
  world.sends(0, 1, 1, { uses: [900, 0, 0, 0, 0], ends: true });
  await closing;
  const [, ...returned] = (await answers).map(resultOf).map(String);
  for (const answer of returned) assert.match(answer, /server is stopping/);
  assert.equal(world.clock.timers, 0);
});

Deno.test("close refuses a replacement that waits for a batch", async () => {
  const world = await started();
  const answer = world.mutate("a");
  await settled();
  const replaced = world.writer.replace(() => Promise.resolve());
  const closing = world.writer.close();
  assert.deepEqual(await replaced, { ok: false, busy: true, message: "The server is stopping" });
  world.commits(0, 1, 1);
  await closing;
  assert.equal(resultOf(await answer), "did a");
});

Deno.test("FA3 a full queue accepts a call of a caller with few calls", async () => {
  const world = await started();
  const by = (queueKey: string) => ({ caller: { queueKey, blame: queueKey } });
  const calls = Array.from(
    { length: isolateLimits.queuedMutationsMax },
    () => world.mutate("a", by("greedy")),
  );
  const newest = calls.at(-1);
  const other = world.mutate("b", by("modest"));
  assert.match(String(resultOf(await newest as Awaited<typeof other>)), /overloaded/);
  await settled();
  assert.ok(world.batch.includes("b"));
});
