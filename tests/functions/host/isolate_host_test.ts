/** The host with real isolates and a real database. */
import assert from "node:assert/strict";
import { IsolateHost } from "../../../mod/functions/host/host.ts";
import { usualTimeouts } from "../../../mod/functions/host/outcomes.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";
import { HANG_MS, until } from "../../support/waiting.ts";
import { call } from "./support/writer_world.ts";
import { app } from "./support/app.ts";
import { RealHost } from "./support/real_host.ts";
import { repeats } from "../../support/long_runs.ts";

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

Deno.test("mutations, queries and actions of an app run, and commits are published in order before the answers", async () => {
  await using it = await RealHost.start(app, { env: { GREETING: "hello" } });
  assert.deepEqual(it.host.info("notes:add"), { kind: "mutation", visibility: "public" });
  assert.deepEqual(it.host.info("notes:secret"), { kind: "mutation", visibility: "internal" });
  assert.equal(it.host.info("notes:nothing"), undefined);
  const reported: string[] = [];
  it.host.onCommits((entries) => reported.push(...entries.map(({ ts }) => `commit ${ts}`)));
  const answers = await Promise.all(
    upTo(20).map(async (n) => {
      const answer = await it.host.mutate(call("notes:add", { n }));
      reported.push(`answer ${answer.ts}`);
      return answer;
    }),
  );
  const first = answers[0]?.ts ?? 0;
  assert.deepEqual(answers.map(({ ts }) => ts), upTo(20).map((n) => first + n));
  assert.equal(it.host.ts, first + 19);
  for (const n of upTo(20)) {
    assert.ok(
      reported.indexOf(`commit ${first + n}`) < reported.indexOf(`answer ${first + n}`),
      reported.join(),
    );
  }
  assert.deepEqual(await it.query("notes:all"), upTo(20));
  assert.match(String(await it.mutate("notes:add", { n: "x" })), /^args: args\.n: /);
  assert.match(String(await it.mutate("notes:secret")), /^unknown_function: /);
  assert.match(String(await it.query("notes:nothing")), /^unknown_function: /);
  assert.deepEqual(await it.act("notes:addTwice", { n: 100 }), {
    all: [...upTo(20), 100, 100.5],
    greeting: "hello",
  });
  assert.equal(await it.act("notes:nested", { n: 5 }), 5);
  assert.deepEqual(it.logged, []);
  assert.match(String(await it.act("notes:nested", { n: 20 })), /nested more than 16 deep/);
});

Deno.test("SIGKILL of the writer, repeatedly: no call is lost or runs twice, and commits have no gaps", async () => {
  await using it = await RealHost.start(app);
  const answered = new Map<number, { result: unknown; ts: number }>();
  let running = true;
  let next = 0;
  const callers = upTo(16).map(async () => {
    while (running) {
      const n = next++;
      const { outcome, ts } = await it.host.mutate(call("notes:add", { n }));
      if (!outcome.ok) throw new Error(outcome.error.message);
      answered.set(n, { result: JSON.parse(outcome.value), ts });
    }
  });
  const done = Promise.all(callers);
  for (let round = 0; round < repeats(5, 50); round++) {
    await it.kill("writer");
    // The next writer serves when more calls are answered than were in flight.
    const before = answered.size;
    while (answered.size < before + 40) {
      await Promise.race([done, new Promise((resolve) => setTimeout(resolve, Math.random() * 4))]);
    }
  }
  running = false;
  await done;
  assert.deepEqual([...answered.keys()].sort((a, b) => a - b), upTo(next), "calls without an answer");
  for (const [n, { result }] of answered) assert.equal(result, n);
  assert.deepEqual(await it.query("notes:all"), upTo(next));
  const commits = [...answered.values()].map(({ ts }) => ts).sort((a, b) => a - b);
  const first = commits[0] ?? 0;
  assert.deepEqual(commits, upTo(next).map((i) => first + i));
  assert.deepEqual(it.entries.map(({ ts }) => ts), commits);
});

Deno.test("an app that cannot be loaded fails the start with file and line, and leaves nothing", async () => {
  const start = RealHost.start({ ...app, "broken.ts": "export const a = 1;\nthrow new Error('nonsense');" });
  await assert.rejects(start, /broken\.ts:2.*nonsense|nonsense[^]*broken\.ts:2/);
});

Deno.test("disposal leaves no process and only the files of the database, which is served again from its last state", async () => {
  await using it = await RealHost.start(app);
  await it.mutate("notes:add", { n: 1 });
  await it.act("notes:nested", { n: 1 });
  await it.query("notes:count");
  const roles = ["writer", "reader", "runner"];
  const before = await Promise.all(roles.map((role) => it.pids(role)));
  assert.ok(before.every((pids) => pids.length > 0), JSON.stringify(before));
  const action = it.host.act(call("notes:wait", { ms: 60_000 }));
  const mutation = it.host.mutate(call("notes:add", { n: 2 }));
  await Promise.resolve();
  await it.stop();
  assert.equal((await mutation).outcome.ok, true, "what the writer had was not waited for");
  assert.equal((await action).ok, false);
  assert.deepEqual((await Promise.all(roles.map((role) => it.pids(role)))).flat(), []);
  assert.deepEqual([...Deno.readDirSync(`${it.dir}/data`)].map(({ name }) => name).sort(), [
    "data.db",
    "versions",
  ]);
  const { ts } = it.host;
  await using host = await IsolateHost.start({
    dataDir: `${it.dir}/data`,
    code: { functionsDir: `${it.dir}/functions` },
    env: {},
    settings: {},
    log: () => {},
  });
  assert.equal(host.ts, ts);
  const { outcome } = await host.mutate(call("notes:add", { n: 5 }));
  assert.deepEqual([outcome.ok, host.ts], [true, ts + 1]);
});

Deno.test("a reader that is starting ends before the writer, which is then alone with the database", async () => {
  await using it = await RealHost.start(app);
  const { isolates } = it.host;
  const endings: number[] = [];
  const ended = isolates.ended.bind(isolates);
  isolates.ended = (pid, cause) => {
    ended(pid, cause);
    endings.push(pid);
  };
  it.host.readers.prepare?.();
  await until(() => isolates.roles.reader.running === 1);
  const [writer] = await it.pids("writer");
  await it.stop();
  assert.equal(endings.length, 2);
  assert.equal(endings[1], writer);
  assert.deepEqual([...Deno.readDirSync(`${it.dir}/data`)].map(({ name }) => name).sort(), [
    "data.db",
    "versions",
  ]);
});

Deno.test("reload swaps the code under load: no call fails, queries use the new code", async () => {
  await using it = await RealHost.start(app);
  let reloads = 0;
  it.host.onReload(() => reloads++);
  let running = true;
  const results: unknown[] = [];
  const callers = upTo(4).map(async () => {
    while (running) results.push(await it.mutate("notes:add", { n: 1 }), await it.query("notes:count"));
  });
  const notes = app["notes.ts"] ?? "";
  await it.write("notes.ts", notes.replace(").length,", ").length + 1_000_000,"));
  assert.deepEqual(await it.host.swaps.reload(), { ok: true });
  assert.ok(Number(await it.query("notes:count")) >= 1_000_000);
  assert.equal(reloads, 1);

  await it.write("notes.ts", "export const nonsense = ;");
  const broken = await it.host.swaps.reload();
  assert.ok(!broken.ok && /notes\.ts:1/.test(broken.message), JSON.stringify(broken));
  assert.ok(Number(await it.query("notes:count")) >= 1_000_000);
  assert.equal(reloads, 1);

  await it.write("notes.ts", notes);
  await it.write(
    "more.ts",
    `import { untypedQuery } from "syncline/server"; export const one = untypedQuery({ handler: () => 1 });`,
  );
  assert.deepEqual(await it.host.swaps.reload(), { ok: true });
  running = false;
  await Promise.all(callers);
  assert.equal(await it.query("more:one"), 1);
  assert.ok(results.every((result) => typeof result === "number"), JSON.stringify(results.slice(0, 20)));
  assert.deepEqual(it.logged.filter((line) => !line.includes("nonsense")), []);
});

Deno.test("slow calls and processes that end or receive signals affect no other call", async (t) => {
  // A query that does not end runs until the test has failed.
  await using it = await RealHost.start(app, { timeouts: { ...usualTimeouts, queryMs: 2 * HANG_MS } });

  await t.step("signals for the whole process group do not reach isolates", async () => {
    await it.query("notes:count");
    // The reader with the lowest id has answered. A second one may be starting.
    const [writer = assert.fail("no writer")] = await it.pids("writer");
    const [reader = assert.fail("no reader")] = await it.pids("reader");
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      for (const pid of [writer, reader]) Deno.kill(pid, signal);
    }
    assert.equal(await it.mutate("notes:add", { n: 1 }), 1);
    assert.equal(await it.query("notes:count"), 1);
    assert.deepEqual(await it.pids("writer"), [writer]);
    assert.ok((await it.pids("reader")).includes(reader), "the reader is still running");
  });

  await t.step("SIGKILL of readers: every query is answered once, by another reader", async () => {
    for (const n of upTo(3)) await it.mutate("notes:add", { n });
    for (let round = 0; round < repeats(3, 10); round++) {
      const results: unknown[] = [];
      const batch = it.host.startQueryBatch(
        Array.from(
          { length: 200 },
          (_, i) => call(i % 20 === 0 ? "notes:spin" : "notes:count", i % 20 === 0 ? { turns: 1e6 } : {}),
        ),
        (index, { outcome }) => {
          assert.equal(results[index], undefined, "answered twice");
          results[index] = outcome.ok;
        },
      );
      await it.kill("reader");
      await batch.done;
      assert.deepEqual(results, new Array(200).fill(true));
    }
  });

  await t.step(
    "a large live result stays correct while only changes are sent, also after its reader was lost",
    async () => {
      await it.mutate("notes:clear");
      let base: Outcome | null = null;
      const numbers: number[] = [];
      for (const n of upTo(6)) {
        await it.mutate("notes:add", { n });
        numbers.push(n);
        if (n === 3) await it.kill("reader");
        const answer = Promise.withResolvers<Outcome>();
        it.host.startQueryBatch(
          [{ ...call("notes:padded"), base }],
          (_, { outcome }) => answer.resolve(outcome),
        );
        const outcome: Outcome = await answer.promise;
        assert.ok(outcome.ok && outcome.kept !== undefined);
        assert.deepEqual(JSON.parse(outcome.value), numbers.map((n) => String(n).padEnd(80_000)));
        base = outcome;
      }
    },
  );

  await t.step(
    "all queries of a refresh batch see one snapshot, at the ts it was pinned, during commits",
    async () => {
      await it.mutate("notes:clear");
      it.entries.length = 0;
      let adding = true;
      // The number of each batch: more would take longer to count, and still more would arrive in the meantime.
      let allowed = 0;
      const adder = (async () => {
        for (let n = 0; adding; n++) {
          await Promise.all([it.mutate("notes:add", { n }), it.mutate("notes:add", { n })]);
          await until(() => n < allowed || !adding);
        }
      })();
      const before = it.host.ts;
      for (let round = 0; round < repeats(10, 40); round++) {
        allowed += 50;
        const counts: number[] = [];
        const batch = it.host.startQueryBatch(
          Array.from({ length: 40 }, () => call("notes:count")),
          (index, answer) => {
            assert.ok(answer.outcome.ok);
            counts[index] = Number(answer.outcome.value) + before - answer.ts;
          },
        );
        const ts = await batch.pinned;
        assert.ok(ts >= before);
        await batch.done;
        assert.deepEqual(counts, new Array(40).fill(0));
      }
      adding = false;
      await adder;
      const { ts } = it.host;
      assert.deepEqual(it.entries.map(({ ts }) => ts), upTo(it.entries.length).map((i) => before + 1 + i));
      assert.equal(it.entries.at(-1)?.ts, ts);
    },
  );

  await t.step("a running action ends with the code it started with", async () => {
    const waiting = it.act("notes:wait", { ms: 400 });
    await it.act("notes:nested", { n: 0 });
    assert.deepEqual(await it.host.swaps.reload(), { ok: true });
    assert.equal(await waiting, 400);
  });

  await t.step("a query that does not end delays no later ones", async () => {
    const order: number[] = [];
    const batch = it.host.startQueryBatch(
      [call("bad:read", { what: "endless loop" }), call("notes:count"), call("notes:count")],
      (index) => order.push(index),
    );
    await until(() => order.length === 2);
    assert.deepEqual(order.toSorted(), [1, 2]);
    await it.stop();
    await batch.done;
  });
});
