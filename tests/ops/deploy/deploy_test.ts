/** Deploys to a running server: served versions, rejections and remaining files. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { changesText } from "../../../mod/cli/deploy/deploy_text.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";
import { appWith, bundleOf, firstApp, secondApp, startDeployWorld } from "./support.ts";

Deno.test("deploys to a running server", async (t) => {
  await using world = await startDeployWorld();
  const { server, admin_, deploy, call } = world;
  await using socket = await server.socket();
  socket.send({
    type: "ModifyQuerySet",
    baseVersion: 0,
    newVersion: 1,
    modifications: [{ type: "Add", queryId: 1, udfPath: "notes:version", args: {} }],
  });
  const shows = (value: unknown) =>
    socket.message((message) =>
      message.type === "Transition" &&
      message.modifications.some((change: { value: unknown }) => change.value === value)
    );
  await shows("one");
  const draft = await call("mutation", "notes:draft", { body: "a draft" });
  let first = "";
  let second = "";

  await t.step("DP2 DP3 a dry run reports changes and leaves nothing behind", async () => {
    const before = await world.leftovers();
    const { status, body } = await deploy(secondApp, { query: "?dryRun=true" });
    assert.equal(status, 200, body.errorMessage);
    assert.equal(body.swapped, false);
    assert.deepEqual(body.changes.functions, {
      added: ["notes:fresh", "notes:tidy"],
      removed: ["notes:gone"],
      changed: ["notes:version"],
    });
    assert.deepEqual(body.changes.files, { added: 0, removed: 0, changed: 0 });
    assert.equal(body.changes.codeChanged, true);
    assert.deepEqual(body.changes.schema.createdIndexes, ["notes.by_text"]);
    assert.deepEqual(body.changes.schema.droppedIndexes, ["notes.by_body"]);
    assert.equal(await call("query", "notes:version"), "one");
    assert.deepEqual(await world.leftovers(), before);
  });

  await t.step(
    "DP1 the new code is served from one commit on: sockets stay open, queries rerun, running calls end with the old code",
    async () => {
      const running = call("action", "notes:slow");
      while ((await call("query", "notes:list")).length < 1) await new Promise((done) => setTimeout(done, 5));
      const answer = await deploy(secondApp);
      assert.equal(answer.status, 200, answer.body.errorMessage);
      second = answer.body.hash;
      first = answer.body.previous;
      assert.equal(answer.body.swapped, true);
      await shows("two");
      assert.equal(socket.closeCode, null);
      assert.equal(await call("query", "notes:fresh"), "fresh");
      await call("mutation", "notes:add", { body: "from the new code" });
      assert.equal(await running, "ended by one");
      const crons = await call("query", "_admin/schedule:crons", {}, world.admin);
      assert.match(JSON.stringify(crons), /"tidy"/);
    },
  );

  await t.step("DP1 an app that is already served is not loaded again", async () => {
    const { body } = await deploy(secondApp);
    assert.deepEqual([body.swapped, body.hash], [false, second]);
  });

  await t.step(
    "DP3 tables that become inaccessible are reported with their documents, which are accessible again later",
    async () => {
      const without = appWith({
        "functions/schema.ts": (text) => text.replace(/drafts: .*\n/, ""),
        "functions/notes.ts": (text) => text.replace(/export const draft .*\n/, ""),
      });
      const { body } = await deploy(without);
      assert.deepEqual(body.changes.schema.unreachable, [{ table: "drafts", documents: 1 }]);
      const again = await deploy({
        ...firstApp,
        "functions/read.ts": `
      import { untypedQuery } from "syncline/server";
      export const drafts = untypedQuery({ handler: async (ctx) => (await ctx.db.query("drafts").collect()).map((d) => d._id) });`,
      });
      assert.equal(again.status, 200, again.body.errorMessage);
      assert.deepEqual(await call("query", "read:drafts"), [draft]);
    },
  );

  await t.step("DP4 invalid documents are counted and listed, and the deploy has no effect", async () => {
    const before = await world.leftovers();
    for (let count = 0; count < 12; count++) await call("mutation", "notes:add", { body: `note ${count}` });
    const strict = appWith({
      "functions/schema.ts": (text) =>
        text.replace("body: z.string() }).index", "body: z.string().max(6) }).index"),
    });
    for (const query of ["?dryRun=true", ""]) {
      const { status, code, body } = await deploy(strict, { query });
      assert.deepEqual([status, code], [409, "schema_mismatch"]);
      const [notes] = body.errorData.data.schema.misfits;
      // Two of before are longer than six characters, and those from the tenth on.
      const all = await call("query", "notes:list");
      const unfit = all.filter((note: { body: string }) => note.body.length > 6);
      assert.deepEqual([notes.table, notes.documents], ["notes", unfit.length]);
      assert.deepEqual(
        notes.first.map(({ id }: { id: string }) => id),
        unfit.slice(0, 10).map(({ _id }: { _id: string }) => _id),
      );
      assert.match(notes.first[0].reason, /body/);
      assert.match(body.errorMessage, /syncline migrate/);
    }
    assert.equal(await call("query", "notes:version"), "one");
    assert.deepEqual(await world.leftovers(), before);
  });

  await t.step(
    "DP5 functions that cannot be loaded are rejected with the reason, and nothing changes",
    async () => {
      const before = await world.leftovers();
      const broken = {
        ...firstApp,
        "functions/bad.ts": `throw new Error("at the top");`,
      };
      const { status, code, body } = await deploy(broken);
      assert.deepEqual([status, code], [400, "broken_functions"]);
      assert.match(body.errorMessage, /bad\.ts/);
      assert.equal(await call("query", "notes:version"), "one");
      assert.deepEqual(await world.leftovers(), before);
    },
  );

  await t.step(
    "DP10 deployed versions are listed, newest first, with the deployer",
    async () => {
      const { body } = await admin_("GET", "/functions/versions");
      assert.equal(body.pinned, false);
      assert.equal(body.versions.length, 3);
      assert.deepEqual(body.versions.map(({ current }: { current: boolean }) => current), [
        true,
        false,
        false,
      ]);
      const last = body.versions.at(-1);
      assert.deepEqual([last.hash, last.functions], [second, 8]);
      assert.ok(last.bytes > 500 && last.deployedAt > 0 && last.by !== "");
    },
  );

  await t.step("DP11 a rollback serves a version by its hash, or the previous one", async () => {
    const named = await admin_("POST", "/functions/rollback", { hash: second, dryRun: true });
    assert.deepEqual([named.status, named.body.swapped], [200, false], named.body.errorMessage);
    assert.deepEqual(named.body.changes.functions.added, ["notes:fresh", "notes:tidy"]);
    const refused = await admin_("POST", "/functions/rollback", { hash: second, message: "two\nlines" });
    assert.equal(refused.status, 400);
    const rolled = await admin_("POST", "/functions/rollback", { hash: second, message: "It was better" });
    assert.deepEqual([rolled.status, rolled.body.swapped], [200, true], rolled.body.errorMessage);
    assert.equal(await call("query", "notes:version"), "two");
    const { body: { versions, history: [now, before] } } = await admin_("GET", "/functions/versions");
    assert.deepEqual([now.hash, now.to, now.message], [second, null, "It was better"]);
    assert.deepEqual([before.to, before.message], [now.from, null]);
    assert.equal(versions[0].message, null, "the message of a rollback is not one of the version");
    const back = await admin_("POST", "/functions/rollback", {});
    assert.equal(back.body.previous, second);
    assert.equal(await call("query", "notes:version"), "one");
    for (const hash of ["0".repeat(32), "../..", first]) {
      const { status, code } = await admin_("POST", "/functions/rollback", { hash });
      assert.deepEqual([status, code], [404, "unknown_version"], hash);
    }
  });

  await t.step("DA31 the bundle of a version is read with its sources", async () => {
    const bundleOfVersion = (hash: string, method = "GET") =>
      fetch(`${server.url}/api/admin/functions/versions/${encodeURIComponent(hash)}/bundle`, {
        method,
        headers: { Authorization: `Bearer ${world.admin}` },
      });
    const read = await bundleOfVersion(second);
    assert.deepEqual([read.status, read.headers.get("Cache-Control")], [200, "no-store"]);
    assert.match(await read.text(), /sourceMappingURL=data:application\/json;base64,/);
    const head = await bundleOfVersion(second, "HEAD");
    assert.deepEqual([head.status, await head.text()], [200, ""]);
    assert.equal(head.headers.get("Content-Type"), read.headers.get("Content-Type"));
    for (const hash of ["0".repeat(32), "../.."]) {
      const missing = await bundleOfVersion(hash);
      assert.deepEqual(
        [missing.status, (await missing.json()).errorData.code],
        [404, "unknown_version"],
        hash,
      );
    }
  });

  await t.step("DP9 a start serves the last deploy", async () => {
    await admin_("POST", "/functions/rollback", { hash: second });
    await server.restart();
    assert.equal(await call("query", "notes:version"), "two");
    const { body } = await admin_("GET", "/functions/versions");
    assert.deepEqual([body.versions[0].hash, body.versions[0].current], [second, true]);
  });

  await t.step("DP7 a rollback does not wait for an upload", async () => {
    const { bytes } = await bundleOf(firstApp);
    const held = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let sent = false;
    const slow = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (!sent) {
          sent = true;
          return controller.enqueue(bytes.subarray(0, 100));
        }
        asked.resolve();
        await held.promise;
        controller.enqueue(bytes.subarray(100));
        controller.close();
      },
    });
    const one = admin_("PUT", "/functions", slow);
    await asked.promise;
    const two = await admin_("POST", "/functions/rollback", { hash: second, dryRun: true });
    assert.equal(two.status, 200, two.body.errorMessage);
    held.resolve();
    assert.equal((await one).status, 200);
    assert.equal(await call("query", "notes:version"), "one");
  });

  await t.step("DP6 an incomplete upload leaves nothing behind", async () => {
    const before = await world.leftovers();
    const { bytes } = await bundleOf(secondApp);
    const abort = new AbortController();
    const begun = Promise.withResolvers<void>();
    const broken = fetch(`${server.url}/api/admin/functions`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${world.admin}` },
      signal: abort.signal,
      body: new ReadableStream({
        pull(controller) {
          controller.enqueue(bytes.subarray(0, 200));
          begun.resolve();
          return new Promise(() => {});
        },
      }),
    });
    await begun.promise;
    abort.abort();
    await assert.rejects(broken);
    while ((await admin_("POST", "/functions/rollback", { hash: second, dryRun: true })).status !== 200);
    // The server detects the closed connection a moment later.
    let left: string[] = [];
    await until(async () => isDeepStrictEqual(left = await world.leftovers(), before), {
      what: () => `leftovers are removed: ${left}`,
    });
  });
});

Deno.test("DP13 a frontend is deployed, served and removed with the functions", async (t) => {
  await using world = await startDeployWorld();
  const page = async () => {
    const response = await fetch(world.server.url, { redirect: "manual" });
    return response.status === 200 ? await response.text() : `${await response.text()}${response.status}`;
  };
  assert.equal(await page(), "302");
  const withPage = await world.deploy({ ...firstApp, "public/index.html": "<h1>first</h1>" });
  assert.equal(withPage.status, 200, withPage.body.errorMessage);
  assert.equal(await page(), "<h1>first</h1>");
  await world.deploy({ ...firstApp, "public/index.html": "<h1>second</h1>" });
  assert.equal(await page(), "<h1>second</h1>");
  await world.server.restart();
  assert.equal(await page(), "<h1>second</h1>");
  await world.admin_("POST", "/functions/rollback", { hash: withPage.body.hash });
  assert.equal(await page(), "<h1>first</h1>");
  const { body: { changes } } = await world.deploy(firstApp, { query: "?dryRun=true" });
  assert.equal(changes.frontendGoes, true);
  assert.match(changesText(changes), /^! the frontend is removed/m);
  const without = await world.deploy(firstApp);
  assert.equal(await page(), "302");
  assert.equal(without.body.changes.frontendGoes, true);
  assert.equal((await world.deploy(secondApp)).body.changes.frontendGoes, false, "there was none");

  await t.step(
    "DP1 npm packages are deployed as installed, including links, without the server's own",
    async () => {
      const { bytes, manifest } = await bundleOf({
        "functions/sum.ts": `
      import { untypedQuery } from "syncline/server";
      import { three } from "modern";
      import old from "old";
      export const sum = untypedQuery({ handler: () => three + old.four });`,
        "node_modules/.store/modern/package.json": `{"name":"modern","type":"module","exports":"./main.js"}`,
        "node_modules/.store/modern/main.js": `export { three } from "./inner.js";`,
        "node_modules/.store/modern/inner.js": "export const three = 3;",
        "node_modules/.store/modern/unused.js": "",
        "node_modules/old/package.json": `{"name":"old","main":"index.js"}`,
        "node_modules/old/index.js": `exports.four = require("./inner").four;`,
        "node_modules/old/inner.js": "exports.four = 4;",
      }, { "node_modules/modern": ".store/modern" });
      assert.deepEqual(Object.keys(manifest.files), ["bundle.js"]);
      const { status, body } = await world.admin_("PUT", "/functions", bytes);
      assert.equal(status, 200, body.errorMessage);
      assert.equal(body.hash, manifest.hash);
      assert.equal(await world.call("query", "sum:sum"), 7);
      await world.server.restart();
      assert.equal(await world.call("query", "sum:sum"), 7);
    },
  );
});

Deno.test("DP13 a server started with --static serves that folder, not a deployed frontend", async () => {
  await using folder = await TempFolder.with({ "index.html": "<h1>named</h1>" });
  await using world = await startDeployWorld({ config: { staticDir: folder.path } });
  const page = async () => await (await fetch(world.server.url)).text();
  const { status } = await world.deploy({ ...secondApp, "public/index.html": "<h1>deployed</h1>" });
  assert.deepEqual([status, await page()], [200, "<h1>named</h1>"]);
  await world.server.restart();
  assert.equal(await page(), "<h1>named</h1>");
});

Deno.test("DP8 a server started with a functions folder rejects deploys with the reason", async () => {
  await using world = await startDeployWorld({ config: { pinned: true } });
  for (const query of ["", "?dryRun=true"]) {
    const { status, code, body } = await world.deploy(secondApp, { query });
    assert.deepEqual([status, code], [409, "functions_pinned"]);
    assert.match(body.errorMessage, /--functions/);
  }
  assert.equal((await world.admin_("POST", "/functions/rollback", {})).code, "functions_pinned");
  assert.equal((await world.admin_("GET", "/functions/versions")).body.pinned, true);
});
