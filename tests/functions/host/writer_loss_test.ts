import assert from "node:assert/strict";
import { functionLimits } from "../../../mod/limits.ts";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { frameText } from "../../../mod/functions/wire/segment_frames.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import type { Group } from "../../../mod/functions/wire/messages.ts";
import { settled } from "../../support/fake_clock.ts";
import { resultOf, WriterWorld } from "./support/writer_world.ts";

/** A world whose writer has a batch of these calls, with answers by path. */
async function withBatch(...paths: string[]) {
  const world = new WriterWorld();
  await world.writer.start();
  const answers = Object.fromEntries(paths.map((path) => [path, world.mutate(path)]));
  const results: Record<string, unknown> = {};
  for (const [path, answer] of Object.entries(answers)) {
    answer.then((answer) => results[path] = resultOf(answer));
  }
  await settled();
  return { world, results };
}

Deno.test("an uncommitted batch runs again on a new writer, in order, before waiting calls", async () => {
  const { world, results } = await withBatch("a", "b");
  world.mutate("c");
  world.isolate.dies("killed");
  await settled();
  assert.equal(world.starter.of("writer").length, 2);
  assert.deepEqual(world.batch, ["a", "b", "c"]);
  world.commits(0, 3, 3);
  await settled();
  assert.deepEqual(results, { a: "did a", b: "did b" });
});

Deno.test("a group that was committed and not reported is reported by the next writer, and does not run again", async () => {
  const { world, results } = await withBatch("a", "b");
  world.commitsUnreported(0, 2, 2);
  world.isolate.dies("killed");
  await settled();
  assert.deepEqual(results, { a: "did a", b: "did b" });
  assert.deepEqual(world.reported, ["commit 1", "commit 2", "answer a", "answer b"]);
  assert.equal(world.batches, 0);
});

Deno.test("the reported groups of a batch are kept, the unreported one is found, and the rest runs again", async () => {
  const { world, results } = await withBatch("a", "b", "c");
  world.commits(0, 1, 1);
  world.commitsUnreported(1, 1, 2);
  world.isolate.dies("killed");
  await settled();
  assert.deepEqual(results, { a: "did a", b: "did b" });
  assert.deepEqual(world.batch, ["c"]);
  assert.deepEqual(world.reported.filter((reported) => reported.startsWith("commit")), [
    "commit 1",
    "commit 2",
  ]);
});

Deno.test("a reported group is not reported again by the next writer", async () => {
  const { world } = await withBatch("a", "b");
  world.commitsUnreported(0, 1, 1);
  world.commits(0, 1, 1);
  world.isolate.dies("killed");
  await settled();
  assert.deepEqual(world.reported.filter((reported) => reported.startsWith("commit")), ["commit 1"]);
  assert.deepEqual(world.batch, ["b"]);
});

Deno.test("the last group of an earlier batch has no effect on this one", async () => {
  const { world } = await withBatch("a");
  world.commitsUnreported(0, 1, 1);
  world.commits(0, 1, 1);
  world.mutate("b");
  await settled();
  world.isolate.dies("killed");
  await settled();
  assert.deepEqual(world.batch, ["b"]);
  assert.deepEqual(world.reported, ["commit 1", "answer a"]);
});

Deno.test("a crash fails the call that was running; the others run again without it", async () => {
  const { world, results } = await withBatch("a", "b", "c");
  world.isolate.noted = { position: 1, startedAt: 0 };
  world.isolate.dies("crashed", "out of memory");
  await settled();
  assert.deepEqual(results, { b: "internal: The mutation ended its isolate (out of memory)" });
  assert.deepEqual(world.batch, ["a", "c"]);
});

/** A world whose writer has a batch of these calls, each with a replay key. */
async function withKeys(...paths: string[]) {
  const world = new WriterWorld();
  await world.writer.start();
  const results: Record<string, unknown> = {};
  for (const [requestId, path] of paths.entries()) {
    const replay = { sessionId: "s", requestId };
    world.mutate(path, { replay, args: { long: true } }).then((answer) => results[path] = resultOf(answer));
  }
  await settled();
  /** The writer dies while it runs a call of its batch. */
  const dies = async (cause: "crashed" | "killed", position: number) => {
    world.isolate.noted = { position, startedAt: 0 };
    world.isolate.dies(cause, "out of memory");
    await settled();
  };
  return { world, results, dies };
}

const CRASHED = {
  kind: "internal",
  message: "The mutation ended its isolate (out of memory)",
  data: null,
  code: "limit",
};

Deno.test("SG7 a call with a key that crashes is sent again to be recorded as failed, and answered then", async () => {
  const { world, results, dies } = await withKeys("a", "b", "c");
  await dies("crashed", 1);
  assert.deepEqual(results, {}, "answered before it was recorded");
  const [first, failing, ...behind] = world.isolate.last("Batch").calls;
  assert.equal(first?.udfPath, "a");
  assert.deepEqual(failing, {
    udfPath: "",
    args: {},
    identity: anonymous,
    origin: "client",
    replay: { sessionId: "s", requestId: 1 },
    failedWith: CRASHED,
  });
  // Later calls may crash as well, which must not undo the record.
  assert.deepEqual(behind, []);
  world.commits(0, 2, 1);
  await settled();
  assert.deepEqual(Object.keys(results), ["a", "b"]);
  assert.deepEqual(world.batch, ["c"]);
});

Deno.test("SG7 a slow call with a key is recorded like one that crashes", async () => {
  const { world, results } = await withKeys("a", "b");
  world.isolate.noted = { position: 0, startedAt: world.clock.now() };
  await world.clock.advance(functionLimits.mutationTimeoutMs + 2 * isolateLimits.watchIntervalMs);
  assert.deepEqual(results, {});
  const [failing] = world.isolate.last("Batch").calls;
  assert.match(failing?.failedWith?.message ?? "", /took longer than 5 s/);
});

Deno.test("a call is not blamed while its failure is being recorded; after three lost writers it gets its error anyway", async () => {
  const { world, results, dies } = await withKeys("a", "b");
  await dies("crashed", 0);
  for (let losses = 0; losses < 3; losses++) {
    assert.deepEqual(results, {});
    assert.deepEqual(world.isolate.last("Batch").calls[0]?.failedWith, CRASHED);
    await dies("crashed", 0);
  }
  assert.deepEqual(results, { a: `internal: ${CRASHED.message}` });
  assert.deepEqual(world.batch, ["b"]);
});

Deno.test("a call that was refused before it ran is sent once, and its failure is not attributed to another call", async () => {
  const world = new WriterWorld();
  await world.writer.start();
  const failedWith = { kind: "args", message: "args: nested too deep", data: null } as const;
  world.mutate("refused", { replay: { sessionId: "s", requestId: 1 }, failedWith });
  world.mutate("behind");
  await settled();
  assert.deepEqual(world.batch, ["refused", "behind"], "it makes a commit of its own");
  world.isolate.noted = { position: 0, startedAt: 0 };
  world.isolate.dies("killed");
  await settled();
  assert.deepEqual(world.isolate.last("Batch").calls.map((call) => call.failedWith), [failedWith, undefined]);
});

Deno.test("a failure that waits for its record is answered when the host closes", async () => {
  const { world, results, dies } = await withKeys("a");
  await dies("crashed", 0);
  const closed = world.writer.close();
  await world.clock.advance(functionLimits.mutationTimeoutMs);
  await closed;
  assert.deepEqual(results, { a: "outcome_unknown: The server stopped before the mutation was answered" });
});

Deno.test("a crash while no call ran is blamed on no call", async () => {
  const { world, results } = await withBatch("a", "b");
  world.isolate.dies("crashed");
  await settled();
  assert.deepEqual(results, {});
  assert.deepEqual(world.batch, ["a", "b"]);
});

Deno.test("a call that was answered before the crash is not blamed", async () => {
  const { world, results } = await withBatch("a", "b");
  world.isolate.noted = { position: 0, startedAt: 0 };
  world.commits(0, 1, 1);
  world.isolate.dies("crashed");
  await settled();
  assert.deepEqual(results, { a: "did a" });
  assert.deepEqual(world.batch, ["b"]);
});

Deno.test("a call fails after three lost writers", async () => {
  const { world, results } = await withBatch("a", "b");
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(results, {});
    world.isolate.noted = { position: 0, startedAt: i };
    world.isolate.dies("killed", "killed from outside");
    await settled();
  }
  assert.deepEqual(results, { a: "internal: The mutation ended its isolate (killed from outside)" });
  assert.deepEqual(world.batch, ["b"]);
});

const group = { type: "Group", from: 0, tables: [], entries: [], ts: 2 } as const;
const answer = [2, 0] as const;

for (
  const [what, nonsense] of Object.entries<Partial<Group>>({
    "a group from the middle": { from: 1, answers: [answer] },
    "a group of another batch": { batch: "other", answers: [answer, answer] },
    "an empty group": { answers: [] },
    "more answers than calls": { answers: [answer, answer, answer] },
    "a group whose entries are none": { answers: [answer, answer], entries: "poison" as never },
    "a change of no table": { answers: [answer, answer], entries: [[2, 0, [[0, "id", "", []]]]] },
    "an answer without its value": { answers: [[2, 1]] },
    "an answer without a result": { answers: [[2]] as never },
    "an answer whose error is none": { answers: [[2, null]] as never },
  })
) {
  Deno.test(`${what} is invalid: the writer is ended and its batch runs again`, async () => {
    const { world } = await withBatch("a", "b");
    const { isolate } = world;
    isolate.sends({ ...group, batch: isolate.last("Batch").batch, answers: [], ...nonsense }, ["null"]);
    assert.ok(isolate.dead);
    await settled();
    assert.deepEqual(world.batch, ["a", "b"]);
    assert.deepEqual(world.reported, []);
  });
}

Deno.test("an invalid last group in the database makes the outcome of its batch unknown, and runs nothing again", async () => {
  const unknown = "outcome_unknown: It is not known whether the mutation was committed";
  const lost = "outcome_unknown: The mutation was committed, but its answer was lost";
  for (
    const nonsense of [
      {},
      { answers: [] },
      { answers: [{}, {}] },
      { answers: [[2], [2, null]] },
      { answers: [answer, answer], from: undefined },
      { answers: [answer, answer], from: -1 },
      { answers: [answer, answer], entries: [["poison"]] },
    ]
  ) {
    for (const named of ["the only batch", "the first batch", "the batch sent ahead"]) {
      const { world, results } = await withBatch("a", "b");
      const first = world.isolate.last("Batch").batch;
      const ahead = world.mutate("c");
      ahead.then((answer) => results["c"] = resultOf(answer));
      if (named !== "the only batch") world.committing();
      const batch = named === "the batch sent ahead" ? world.isolate.last("Batch").batch : first;
      world.starter.lastGroup = frameText({ type: "Group", batch, from: 0, ts: 2, ...nonsense }, ["null"]);
      world.starter.ts = 2;
      world.isolate.dies("killed");
      await settled();
      if (named === "the only batch") {
        assert.deepEqual(results, { a: unknown, b: unknown });
        assert.deepEqual(world.batch, ["c"]);
      } else {
        const reported = named === "the first batch" ? unknown : lost;
        assert.deepEqual(results, { a: reported, b: reported, c: unknown });
        assert.equal(world.batches, 0);
      }
    }
  }
});

Deno.test("a last group of no batch is ignored: the calls in flight run again", async () => {
  for (const ahead of [false, true]) {
    const { world, results } = await withBatch("a");
    world.mutate("b");
    if (ahead) world.committing();
    world.starter.lastGroup = frameText({ type: "Group", from: 0, ts: 0 }, []);
    world.isolate.dies("killed");
    await settled();
    assert.deepEqual(results, {});
    assert.deepEqual(world.batch, ["a", "b"]);
  }
});

Deno.test("a call over its time limit ends the writer and gets the error, and the others run again", async () => {
  const { world, results } = await withBatch("a", "b", "c");
  world.isolate.noted = { position: 1, startedAt: 0 };
  await world.clock.advance(functionLimits.mutationTimeoutMs);
  assert.deepEqual(results, {});
  await world.clock.advance(2 * isolateLimits.watchIntervalMs);
  assert.deepEqual(results, { b: "internal: The mutation took longer than 5 s" });
  assert.equal(world.starter.of("writer").length, 2);
  assert.deepEqual(world.batch, ["a", "c"]);
});

Deno.test("time is measured from the call's own start, not from its batch's", async () => {
  const { world, results } = await withBatch("a", "b", "c");
  for (let position = 0; position < 3; position++) {
    world.isolate.noted = { position, startedAt: position };
    await world.clock.advance(functionLimits.mutationTimeoutMs - isolateLimits.watchIntervalMs);
  }
  world.commits(0, 3, 3);
  await settled();
  assert.deepEqual(results, { a: "did a", b: "did b", c: "did c" });
  assert.equal(world.starter.starts, 1);
});

Deno.test("a writer that does not start its batch, because of earlier background work, is replaced and blames no call", async () => {
  const { world, results } = await withBatch("a");
  await world.clock.advance(functionLimits.mutationTimeoutMs);
  assert.equal(world.starter.starts, 1);
  await world.clock.advance(2 * isolateLimits.watchIntervalMs);
  assert.equal(world.starter.starts, 2);
  assert.deepEqual(results, {});
  assert.deepEqual(world.batch, ["a"]);
});

Deno.test("a writer that is silent while it stores gets the time of a slow disk, and blames no call", async () => {
  const { world, results } = await withBatch("a");
  world.isolate.noted = { position: null, startedAt: 1 };
  await world.clock.advance(2 * functionLimits.mutationTimeoutMs);
  assert.equal(world.starter.starts, 1);
  await world.clock.advance(2 * functionLimits.mutationTimeoutMs);
  assert.equal(world.starter.starts, 2);
  assert.deepEqual(results, {});
  assert.deepEqual(world.batch, ["a"]);
});

Deno.test("the watchdog has one timer for any number of calls, and none without calls", async () => {
  const { world } = await withBatch("a");
  assert.equal(world.clock.timers, 1);
  world.commits(0, 1, 1);
  world.mutate("b");
  await settled();
  assert.equal(world.clock.timers, 1);
  world.commits(0, 1, 2);
  await world.clock.advance(isolateLimits.watchIntervalMs);
  assert.equal(world.clock.timers, 0);
});

Deno.test("a batch sent ahead runs again after the uncommitted calls before it", async () => {
  const { world, results } = await withBatch("a", "b");
  world.mutate("c");
  world.committing();
  world.mutate("d");
  assert.deepEqual(world.batch, ["c"]);
  world.isolate.dies("killed");
  await settled();
  assert.deepEqual(results, {});
  assert.deepEqual(world.batch, ["a", "b", "c", "d"]);
});

Deno.test("a batch that was sent ahead becomes the current one when the one before it is reported", async () => {
  const { world, results } = await withBatch("a");
  world.mutate("b").then((answer) => results["b"] = resultOf(answer));
  world.mutate("c");
  world.committing();
  world.commits(0, 1, 1, 0);
  world.isolate.noted = { position: 0, startedAt: 0 };
  await world.clock.advance(functionLimits.mutationTimeoutMs + 2 * isolateLimits.watchIntervalMs);
  assert.deepEqual(results, { a: "did a", b: "internal: The mutation took longer than 5 s" });
  assert.deepEqual(world.batch, ["c"]);
});

Deno.test("cancelled calls of a batch sent ahead do not run when a writer is available again", async () => {
  const { world, results } = await withBatch("a");
  world.mutate("b").then((answer) => results["b"] = resultOf(answer));
  world.committing();
  world.starter.broken = "nonsense";
  world.isolate.dies("killed");
  await world.clock.advance(isolateLimits.startMs + 10_000);
  for (const path of ["a", "b"]) assert.match(String(results[path]), /It is not known/);
  world.starter.broken = null;
  await world.clock.advance(5_000);
  assert.equal(world.batches, 0);
});

Deno.test("a replacement requested after a batch was sent ahead waits for it", async () => {
  const { world, results } = await withBatch("a");
  world.mutate("b").then((answer) => results["b"] = resultOf(answer));
  world.committing();
  const replaced = world.writer.replace(() => Promise.resolve());
  world.commits(0, 1, 1, 0);
  await settled();
  assert.equal(world.starter.starts, 1);
  world.commits(0, 1, 2, 1);
  assert.deepEqual(await replaced, { ok: true });
  assert.deepEqual(results, { a: "did a", b: "did b" });
});

Deno.test("a batch that was sent ahead and committed proves that the one before it was, even without a report", async () => {
  const { world, results } = await withBatch("a");
  world.mutate("b");
  world.committing();
  world.commitsUnreported(0, 1, 2);
  world.isolate.dies("crashed", "nonsense");
  await settled();
  assert.deepEqual(results, { a: "outcome_unknown: The mutation was committed, but its answer was lost" });
  assert.deepEqual(world.reported, ["gap 2", "commit 2", "answer a", "answer b"]);
  assert.equal(world.batches, 0);
});

Deno.test("while no writer can be started tries become rare", async () => {
  const { world, results } = await withBatch("a");
  world.starter.broken = "schema.ts:1: nonsense";
  world.isolate.dies("killed");
  await settled();
  await world.clock.advance(20_000);
  assert.ok(world.starter.starts > 3 && world.starter.starts < 15, `${world.starter.starts} starts`);
  assert.deepEqual(results, {});
  world.starter.broken = null;
  await world.clock.advance(5_000);
  assert.deepEqual(world.batch, ["a"]);
});

Deno.test("calls do not wait indefinitely for a writer", async () => {
  const { world, results } = await withBatch("a");
  world.starter.broken = "schema.ts:1: nonsense";
  world.isolate.dies("killed");
  const late = world.mutate("late");
  await world.clock.advance(isolateLimits.startMs + 10_000);
  assert.match(String(resultOf(await late)), /^internal: The app cannot be started: schema.ts:1: nonsense/);
  assert.match(String(results["a"]), /^outcome_unknown: It is not known whether the mutation was committed/);
});

Deno.test("a call with an unknown outcome is not run again when it proves to be committed", async () => {
  const { world } = await withBatch("a");
  world.starter.broken = "nonsense";
  world.commitsUnreported(0, 1, 1);
  world.isolate.dies("killed");
  await world.clock.advance(isolateLimits.startMs + 10_000);
  world.starter.broken = null;
  await world.clock.advance(5_000);
  assert.deepEqual(world.reported, ["answer a", "commit 1"]);
  assert.equal(world.batches, 0);
});

Deno.test("a cancelled call does not run when a writer is available again", async () => {
  const { world } = await withBatch("a", "b");
  world.starter.broken = "nonsense";
  world.isolate.dies("killed");
  await world.clock.advance(isolateLimits.startMs + 10_000);
  world.starter.broken = null;
  await world.clock.advance(5_000);
  assert.equal(world.batches, 0, "a mutation ran after its caller had received a failure");
});

Deno.test("a crash loop slows down", async () => {
  const { world } = await withBatch("a");
  world.starter.onStart = (isolate) => isolate.onSent = () => isolate.dies("crashed");
  for (let i = 0; i < 300; i++) world.mutate("b");
  world.isolate.dies("crashed");
  await world.clock.advance(60_000);
  assert.ok(world.starter.starts <= 3 * isolateLimits.restartsPerMinuteMax, `${world.starter.starts} starts`);
});

Deno.test("commits without a report make every query run again", async () => {
  const { world } = await withBatch("a", "b");
  world.commitsUnreported(1, 1, 2);
  world.isolate.dies("killed");
  await settled();
  assert.deepEqual(world.reported, ["gap 2", "commit 2", "answer a", "answer b"]);
});

Deno.test("an unreadable last group makes the outcome of the batch unknown, and does not run it twice", async () => {
  const { world, results } = await withBatch("a");
  world.starter.lastGroup = "{";
  world.isolate.dies("killed");
  await settled();
  assert.deepEqual(results, { a: "outcome_unknown: It is not known whether the mutation was committed" });
  assert.equal(world.batches, 0);
});

Deno.test("replace swaps the writer between two batches and continues with the queue", async () => {
  const { world, results } = await withBatch("a");
  const old = world.isolate;
  let meanwhile = 0;
  let before = 0;
  const replaced = world.writer.replace(() => {
    meanwhile++;
    return Promise.resolve();
  }, {
    before: () => {
      before++;
      assert.equal(world.starter.starts, 1, "the new writer is started after it");
      return Promise.resolve();
    },
  });
  const waits = world.mutate("b");
  await settled();
  assert.equal(world.starter.starts, 1, "the new writer was started beside a batch");
  world.commits(0, 1, 1);
  assert.deepEqual(await replaced, { ok: true });
  assert.deepEqual([before, meanwhile, old.dead, results["a"]], [1, 1, true, "did a"]);
  await settled();
  assert.deepEqual(world.batch, ["b"]);
  world.commits(0, 1, 2);
  assert.equal(resultOf(await waits), "did b");
});

Deno.test("replace with broken code keeps the old writer serving", async () => {
  const { world } = await withBatch("a");
  world.commits(0, 1, 1);
  world.starter.broken = "messages.ts:3: nonsense";
  const replaced = await world.writer.replace(() => assert.fail("it was not replaced"));
  assert.deepEqual(replaced, { ok: false, message: "messages.ts:3: nonsense" });
  world.mutate("b");
  await settled();
  assert.deepEqual(world.batch, ["b"]);
  assert.equal(world.isolate.dead, false);
});

Deno.test("replace rejects with a callback's error, and a writer continues", async () => {
  const { world } = await withBatch("a");
  world.commits(0, 1, 1);
  const fails = () => Promise.reject(new Error("no space"));
  await assert.rejects(world.writer.replace(() => Promise.resolve(), { before: fails }), /no space/);
  assert.equal(world.starter.starts, 1);
  await assert.rejects(world.writer.replace(fails), /no space/);
  assert.equal(world.starter.starts, 2);
  world.mutate("b");
  await settled();
  assert.deepEqual([world.batch, world.isolate.dead], [["b"], false]);
});

Deno.test("a writer lost while its replacement fails is started again", async () => {
  const { world } = await withBatch("a");
  world.commits(0, 1, 1);
  const ready = Promise.withResolvers<void>();
  world.starter.delay = ready.promise;
  world.starter.broken = "nonsense";
  const replaced = world.writer.replace(() => Promise.resolve());
  await settled();
  world.isolate.dies("killed");
  ready.resolve();
  assert.equal((await replaced).ok, false);
  world.starter.broken = null;
  world.mutate("b");
  await world.clock.advance(1_000);
  assert.deepEqual(world.batch, ["b"]);
});

Deno.test("a replacement waits for the start of a lost writer, so that two writers never run", async () => {
  const { world } = await withBatch("a");
  world.commits(0, 1, 1);
  const ready = Promise.withResolvers<void>();
  world.starter.delay = ready.promise;
  world.isolate.dies("killed");
  await settled();
  const replaced = world.writer.replace(() => Promise.resolve());
  await settled();
  assert.equal(world.starter.starts, 2, "the replacement is not started beside the new writer");
  ready.resolve();
  assert.deepEqual(await replaced, { ok: true });
  await settled();
  assert.deepEqual(world.starter.isolates.map(({ dead }) => dead), [true, true, false]);
});

Deno.test("a lost writer that was replaced before its delayed restart is not started again", async () => {
  const { world } = await withBatch("a");
  world.commits(0, 1, 1);
  world.starter.broken = "nonsense";
  world.isolate.dies("killed");
  await settled();
  world.starter.broken = null;
  const { starts } = world.starter;
  assert.deepEqual(await world.writer.replace(() => Promise.resolve()), { ok: true });
  await world.clock.advance(60_000);
  assert.equal(world.starter.starts, starts + 1);
  assert.equal(world.isolate.dead, false);
});
