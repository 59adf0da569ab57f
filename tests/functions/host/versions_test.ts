/** Isolates load the served version and no other, even if its source files change. */
import assert from "node:assert/strict";
import { usualMemory } from "../../../mod/functions/host/process/isolate_memory.ts";
import { until } from "../../support/waiting.ts";
import { RealHost } from "./support/real_host.ts";

const app = (word: string): Record<string, string> => ({
  "notes.ts":
    `import { untypedAction, untypedMutation, untypedQuery } from "syncline/server"; import { word } from "./word.ts";
    export const ask = untypedQuery(() => word);
    export const change = untypedMutation(() => word);
    export const act = untypedAction(() => word);
    export const fail = untypedQuery(() => { throw new Error("bad luck " + /file:.*:5|app:.*:5/.exec(new Error().stack)); });
    export const shout = untypedQuery((ctx) => ctx.log.info(new Error("loud").stack));
    export const loop = untypedMutation(() => { for (;;); });
    export const wait = untypedAction(async (ctx) => {
      const before = word;
      while (!(await ctx.runQuery("notes:ask", {})).startsWith("new")) await new Promise((r) => setTimeout(r, 20));
      return [before, word];
    });`,
  "word.ts": `export const word: string = ${JSON.stringify(word)};`,
});
const everywhere = async (it: RealHost) => [
  await it.query("notes:ask"),
  await it.mutate("notes:change"),
  await it.act("notes:act"),
];
const edit = (it: RealHost, word: string) => it.write("word.ts", app(word)["word.ts"] ?? "");

Deno.test("VE1 an edit on disk has no effect before it is loaded, not even on isolates that start later", async () => {
  await using it = await RealHost.start(app("old"));
  await edit(it, "edited");
  // The first action starts the first runner.
  assert.deepEqual(await everywhere(it), ["old", "old", "old"]);
  // A timeout costs the writer its life.
  await it.mutate("notes:loop");
  for (const role of ["reader", "runner"]) await it.kill(role);
  assert.equal(await it.mutate("notes:change"), "old");
  assert.equal(await it.query("notes:ask"), "old");
  await Deno.remove(`${it.dir}/functions`, { recursive: true });
  for (const role of ["writer", "reader"]) await it.kill(role);
  assert.equal(await it.mutate("notes:change"), "old");
  assert.equal(await it.query("notes:ask"), "old");
});

Deno.test("a host loads one version after the other", async (t) => {
  await using it = await RealHost.start(app("old"));
  const { host } = it;

  await t.step(
    "VE3 after a broken edit the version before it is served by every kind of isolate",
    async () => {
      await it.write("word.ts", "export const word = ;");
      const result = await host.swaps.reload();
      assert.ok(!result.ok);
      assert.match(result.message, /^word\.ts:1:21: /m);
      assert.deepEqual(await everywhere(it), ["old", "old", "old"]);
    },
  );

  await t.step("VE5 errors and logs name files as in the author's folder", async () => {
    const answer = await it.run("notes:fail");
    assert.ok(!answer.outcome.ok);
    assert.equal(answer.outcome.error.message, `bad luck file://${it.dir}/functions/notes.ts:5`);
    assert.match(answer.outcome.error.stack ?? "", /^\s+at \S* ?\(?notes\.ts:5:\d+\)?/);
    const { outcome } = await it.run("notes:shout");
    assert.match(outcome.logLines.join(), new RegExp(`at .*file://${it.dir}/functions/notes\\.ts:6:\\d+`));
  });

  await t.step(
    "VE2 a reload serves the new version everywhere; running calls end with their old code",
    async () => {
      const begun = Promise.withResolvers<void>();
      host.serveQueries(async ({ udfPath, args }) => {
        begun.resolve();
        return (await it.run(udfPath, args)).outcome;
      });
      const waiting = it.act("notes:wait");
      // Its first question: it runs, and no longer waits for a runner that may load either version.
      await begun.promise;
      await edit(it, "new");
      assert.deepEqual(await host.swaps.reload(), { ok: true });
      assert.deepEqual(await everywhere(it), ["new", "new", "new"]);
      assert.deepEqual(await waiting, ["old", "old"]);
    },
  );

  const first = host.code.version;
  assert.ok(first);

  await t.step("VE4 versions are named by their content, listed, and can be loaded again", async () => {
    await edit(it, "two");
    assert.deepEqual(await host.swaps.reload(), { ok: true });
    const second = host.code.version;
    assert.notEqual(first.hash, second?.hash);
    const newest = (await host.code.versions.list()).slice(0, 2).map(({ hash }) => hash);
    assert.deepEqual(newest, [second?.hash, first.hash]);
    assert.deepEqual(await host.swaps.load(await host.code.versions.get(first.hash)), { ok: true });
    assert.deepEqual(await everywhere(it), ["new", "new", "new"]);
    assert.equal(host.code.version?.hash, first.hash);
    await edit(it, "new");
    assert.equal((await host.code.versions.make({ functionsDir: `${it.dir}/functions` })).hash, first.hash);
  });

  await t.step("VE6 concurrent loads run one after another", async () => {
    await edit(it, "two");
    const { swaps } = host;
    const results = await Promise.all([swaps.reload(), swaps.load(first), swaps.reload()]);
    assert.deepEqual(results, [{ ok: true }, { ok: true }, { ok: true }]);
    assert.deepEqual(await everywhere(it), ["two", "two", "two"]);
  });

  await t.step(
    "DK3 a load asks for confirmation between the last commit and the swap; a refusal changes nothing",
    async () => {
      const refusal = new Error("revoked");
      let commitsDuring = 0;
      const refused = host.swaps.load(first, {
        async confirm() {
          // Queries are answered; mutations wait until the swap is decided.
          assert.equal(await it.query("notes:ask"), "two");
          void it.mutate("notes:change").then(() => commitsDuring++);
          assert.equal(await it.query("notes:ask"), "two");
          assert.equal(commitsDuring, 0);
          throw refusal;
        },
        swapped: () => Promise.reject(new Error("swapped")),
      });
      await assert.rejects(refused, refusal);
      assert.deepEqual(await everywhere(it), ["two", "two", "two"]);
      assert.equal(commitsDuring, 1);
      assert.notEqual(host.code.version?.hash, first.hash);
      assert.deepEqual(await host.swaps.load(first, { confirm: () => Promise.resolve() }), { ok: true });
      assert.deepEqual(await everywhere(it), ["new", "new", "new"]);
    },
  );
});

Deno.test("VE17 spare isolates load the next version, and name its files as in the author's folder", async () => {
  await using it = await RealHost.start(app("one"));
  const roles = ["writer", "reader"];
  const pids = async () => (await Promise.all(roles.map((role) => it.pids(role)))).flat();
  await it.query("notes:ask");
  const serving = await pids();
  it.host.swaps.standBy();
  await until(async () => (await pids()).length === 4);
  const standing = (await pids()).filter((pid) => !serving.includes(pid));
  await edit(it, "two");
  assert.deepEqual(await it.host.swaps.reload(), { ok: true });
  assert.deepEqual(await everywhere(it), ["two", "two", "two"]);
  const { outcome } = await it.run("notes:fail");
  assert.ok(!outcome.ok);
  assert.equal(outcome.error.message, `bad luck file://${it.dir}/functions/notes.ts:5`);
  assert.match(outcome.error.stack ?? "", /^\s+at \S* ?\(?notes\.ts:5:\d+\)?/);
  await until(async () => (await pids()).length === 2);
  assert.deepEqual((await pids()).toSorted(), standing.toSorted());
});

Deno.test("VE17 a broken edit leaves no unusable spare isolate, and one that adds a package is loaded", async () => {
  await using it = await RealHost.start(app("one"));
  const all = async () => (await Promise.all(["writer", "reader"].map((role) => it.pids(role)))).flat();
  await it.query("notes:ask");
  it.host.swaps.standBy();
  await until(async () => (await all()).length === 4);
  await it.write("word.ts", "export const word = missing;");
  assert.equal((await it.host.swaps.reload()).ok, false);
  await until(async () => (await all()).length === 2);
  it.host.swaps.standBy();
  await until(async () => (await all()).length === 4);
  const standing = await all();
  // Found before an isolate loads it.
  await it.write("word.ts", "export const word = ;");
  assert.equal((await it.host.swaps.reload()).ok, false);
  assert.deepEqual((await all()).toSorted(), standing.toSorted());
  const folder = `${it.dir}/node_modules/words`;
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(`${folder}/package.json`, '{"name":"words","main":"index.mjs","version":"1.0.0"}');
  await Deno.writeTextFile(`${folder}/index.mjs`, 'export const word = "packed";');
  await it.write("word.ts", 'export { word } from "words";');
  assert.deepEqual(await it.host.swaps.reload(), { ok: true });
  assert.equal(await it.query("notes:ask"), "packed");
  await until(async () => (await all()).length === 2);
  assert.ok((await all()).every((pid) => standing.includes(pid)));
});

Deno.test("VE17 with little memory an edit is loaded too, by a reader that starts after its writer", async () => {
  await using it = await RealHost.start(app("one"), { memory: { ...usualMemory, sparing: true } });
  it.host.swaps.standBy();
  await edit(it, "two");
  assert.deepEqual(await it.host.swaps.reload(), { ok: true });
  assert.deepEqual(await everywhere(it), ["two", "two", "two"]);
});
