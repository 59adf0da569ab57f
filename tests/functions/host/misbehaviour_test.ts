/** Misbehaving functions: each causes one error for its caller and none for others. */
import assert from "node:assert/strict";
import { app } from "./support/app.ts";
import { call, resultOf } from "./support/writer_world.ts";
import { RealHost } from "./support/real_host.ts";
import { type IsolateMemory, usualMemory } from "../../../mod/functions/host/process/isolate_memory.ts";
import { isLongRun, repeats } from "../../support/long_runs.ts";

/** The expected error of each. On a busy machine, out of memory and out of time may occur in either order. */
const ENDS = {
  "endless loop": /took longer|busy for 10 s/,
  "endless microtasks": /took longer|busy for 10 s/,
  "heap bomb": /out of memory|took longer|busy for 10 s/,
  "touched buffers": /out of memory|Array buffer allocation failed|took longer|busy for 10 s/,
  "one huge buffer": /Array buffer allocation failed/,
  "exit": /exit/,
  "never settles": /never/,
  "deep recursion": /Maximum call stack/,
} as const;

/** Functions that end without running out of time, on any machine. */
const AT_ONCE: ReadonlySet<string> = new Set(["one huge buffer", "exit", "deep recursion"]);

/** Functions tried with one kind of call only: they end like an endless loop or a heap bomb. */
const ALIKE: ReadonlySet<string> = new Set(isLongRun ? [] : ["endless microtasks", "touched buffers"]);

/** Those that are tried in actions, too. */
const IN_ACTIONS = [
  "endless loop",
  "endless microtasks",
  "heap bomb",
  "one huge buffer",
  "exit",
  "deep recursion",
] as const;

/** How many times faster than written timeouts pass: 10 s in five. Calls that end have that long on a busy machine. */
const HURRY = 2;

/** An isolate is full soon. */
const memory: IsolateMemory = { ...usualMemory, heapMiB: 128, dataMiB: 768 };
/** Without these an endless query would run six times as long as an endless mutation. */
const timeouts = { queryMs: 10_000, mutationMs: 10_000 };

/** Each function has a separate module, so that the known duration of one does not apply to the others. */
const places = new Map(Object.keys(ENDS).map((what, at) => [what, `bad${at}`]));
const manyBad = Object.fromEntries([...places.values()].map((place) => [`${place}.ts`, app["bad.ts"] ?? ""]));

Deno.test("forbidden operations cost only their caller an error, every time", async (t) => {
  await using hurried = await RealHost.start({ ...app, ...manyBad }, { hurry: HURRY, memory, timeouts });
  // Functions that end by themselves have all the time they need.
  await using unhurried = await RealHost.start({ ...app, ...manyBad }, { memory });
  const hostOf = (what: string) => AT_ONCE.has(what) ? unhurried : hurried;

  for (const [what, end] of Object.entries(ENDS)) {
    const it = hostOf(what);
    const bad = (name: string) => `${places.get(what)}:${name}`;

    await t.step(`${what} in a mutation: earlier, concurrent and later calls succeed`, async () => {
      await it.mutate("notes:clear");
      await it.mutate("notes:add", { n: -1 });
      const results = await Promise.all([
        it.mutate("notes:add", { n: 0 }),
        it.mutate("notes:add", { n: 1 }),
        it.mutate(bad("change"), { what }),
        it.mutate("notes:add", { n: 2 }),
        it.query("notes:spin", { turns: 10 }),
      ]);
      const [before, beside, error, behind, other] = results;
      assert.deepEqual([before, beside, behind, typeof other], [0, 1, 2, "number"]);
      assert.match(String(error), /^internal: /);
      assert.match(String(error), end);
      assert.deepEqual(await it.query("notes:all"), [-1, 0, 1, 2]);
    });

    if (ALIKE.has(what)) continue;

    await t.step(
      `SG7 ${what} in a mutation with a key is recorded: its duplicates get the same response, and do not run`,
      async () => {
        await it.mutate("notes:clear");
        const replay = { sessionId: what, requestId: 1 };
        const call_ = { ...call(bad("changeWithKey"), { what }), replay };
        const [first, beside] = await Promise.all([it.host.mutate(call_), it.host.mutate(call_)]);
        const later = await it.host.mutate({ ...call("notes:add", { n: 1 }), replay });
        assert.match(String(resultOf(first)), /^internal: /);
        assert.match(String(resultOf(first)), end);
        for (const again of [beside, later]) {
          assert.deepEqual(resultOf(again), resultOf(first));
          assert.deepEqual([again.ts, again.replayed], [first.ts, true]);
        }
        assert.deepEqual(await it.query("notes:all"), []);
      },
    );

    await t.step(`${what} in a query: the other queries of its batch succeed`, async () => {
      await it.mutate("notes:clear");
      await it.mutate("notes:add", { n: 1 });
      const paths = ["notes:count", bad("read"), "notes:all", "notes:count"];
      const results: unknown[] = [];
      const batch = it.host.startQueryBatch(
        paths.map((path) => call(path, path === bad("read") ? { what } : {})),
        (index, { outcome }) =>
          results[index] = outcome.ok ? JSON.parse(outcome.value) : outcome.error.message,
      );
      assert.equal(await it.mutate("notes:add", { n: 2 }), 2);
      await batch.done;
      assert.ok(results[0] === 1 || results[0] === 2);
      assert.equal(typeof results[3], "number");
      assert.ok(Array.isArray(results[2]));
      assert.match(String(results[1]), end);
    });
  }

  for (const what of IN_ACTIONS) {
    if (ALIKE.has(what)) continue;
    const it = hostOf(what);
    await t.step(`${what} in an action: other actions, mutations and queries succeed`, async () => {
      const [error, other, change] = await Promise.all([
        it.act(`${places.get(what)}:act`, { what }),
        it.act("notes:wait", { ms: 50 }),
        it.mutate("notes:add", { n: 1 }),
      ]);
      assert.deepEqual([other, change], [50, 1]);
      assert.match(String(error), /^internal: /);
      assert.match(String(error), ENDS[what]);
      assert.equal(await it.act("notes:wait", { ms: 1 }), 1);
    });
  }

  await t.step("functions that repeatedly end their isolate do not prevent others from running", async () => {
    await hurried.mutate("notes:clear");
    const bad = Array.from(
      { length: repeats(3, 5) },
      () => hurried.mutate("bad:change", { what: "endless loop" }),
    );
    const good = Array.from({ length: 20 }, (_, n) => hurried.mutate("notes:add", { n }));
    assert.deepEqual(await Promise.all(good), Array.from({ length: 20 }, (_, n) => n));
    for (const error of await Promise.all(bad)) assert.match(String(error), /took longer than 10 s/);
    assert.equal(await hurried.query("notes:count"), 20);
  });

  await t.step("background work of a mutation costs the writer, and no call its response", async () => {
    await hurried.mutate("notes:clear");
    assert.equal(await hurried.mutate("bad:change", { what: "microtasks left behind" }), "done");
    const results = await Promise.all([1, 2, 3].map((n) => hurried.mutate("notes:add", { n })));
    assert.deepEqual(results, [1, 2, 3]);
    assert.deepEqual(await hurried.query("notes:all"), [1, 2, 3]);
  });

  await t.step("background work of a mutation does not prevent a reload", async () => {
    // Sequential and fast, so that the writer busy-waits for the next one.
    for (let n = 0; n < 300; n++) assert.equal(await hurried.mutate("notes:add", { n }), n);
    assert.equal(await hurried.mutate("bad:change", { what: "microtasks left behind" }), "done");
    assert.deepEqual(await hurried.host.swaps.reload(), { ok: true });
    assert.equal(await hurried.mutate("notes:add", { n: 300 }), 300);
  });
});

Deno.test("a function that exhausts the heap is ended long before its time limit", async () => {
  // Its five seconds are a hundred here: however slowly it fills the memory, that is what ends it.
  await using it = await RealHost.start(app, { hurry: 0.05, memory });
  const [mutation, query, other] = await Promise.all([
    it.mutate("bad:change", { what: "heap bomb" }),
    it.query("bad:read", { what: "heap bomb" }),
    it.mutate("notes:add", { n: 1 }),
  ]);
  assert.equal(mutation, "internal: The mutation ended its isolate (out of memory)");
  assert.equal(query, "internal: The query ended its isolate (out of memory)");
  assert.equal(other, 1);
  assert.ok(it.logged.every((line) => line.length < 1_000), it.logged.join("\n"));
});

Deno.test("SG13 a named mutation of a refused function has one outcome: its record, or a recorded refusal", async () => {
  await using it = await RealHost.start(app);
  const named = (requestId: number, what: string) => ({
    ...call("bad:change", { what }),
    caller: { queueKey: "me", blame: "me" },
    replay: { sessionId: "s", requestId },
  });
  const late = [1, 2, 3].map((requestId) => it.host.mutate(named(requestId, "endless loop")));
  const answers = await Promise.all([it.host.mutate(named(0, "microtasks left behind")), ...late]);
  assert.deepEqual(answers.map(({ outcome }) => outcome.ok), [true, false, false, false]);
  const again = await it.host.mutate(named(0, "microtasks left behind"));
  assert.deepEqual([again.outcome.ok, again.replayed, again.ts], [true, true, answers[0]?.ts]);
  const refusals = [await it.host.mutate(named(4, "anything")), await it.host.mutate(named(4, "anything"))];
  for (const { outcome } of refusals) {
    assert.ok(!outcome.ok && outcome.error.data?.code === "overloaded");
    assert.equal(outcome.error.retryable, undefined, "a copy of it gets the same answer");
  }
  assert.deepEqual(refusals.map(({ replayed }) => replayed), [false, true]);
});
