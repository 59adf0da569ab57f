/** The execution log of a server: contents, access, search and stream. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { FunctionError, SynclineClient, SynclineHttpClient } from "../../../mod/client/mod.ts";
import { logLimits } from "../../../mod/ops/limits.ts";
import { EventReader } from "./support/event_reader.ts";

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }).index("by_text", ["text"]) });
`,
  "notes.ts": `
import { untypedAction, untypedMutation, untypedQuery, UserError } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => {
  ctx.log.info("Adding a note", { text, length: text.length });
  return ctx.db.insert("notes", { text });
} });
export const list = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").withIndex("by_text").collect()).map((note) => note.text) });
export const count = untypedQuery({ args: {}, handler: async (ctx) => { await ctx.db.query("notes").collect(); console.log("counted"); return "the same"; } });
export const refuse = untypedMutation({ args: {}, handler: () => { throw new UserError("no_way", "Never"); } });
export const fail = untypedMutation({ args: {}, handler: (ctx) => { ctx.log.warn("about to fail"); throw new Error("a bug of mine"); } });
export const broken = untypedQuery({ args: {}, handler: () => { throw new Error("a bug of a query"); } });
export const brokenAct = untypedAction({ args: {}, handler: () => { throw new Error("a bug of an action"); } });
export const later = untypedMutation({ args: {}, handler: (ctx) => ctx.scheduler.runAfter(0, "notes:fail", {}) });
export const act = untypedAction({ args: { text: z.string() }, handler: async (ctx, { text }) => {
  ctx.log.debug("acting");
  await ctx.runMutation("notes:add", { text });
  return await ctx.runQuery("notes:list", {});
} });
export const flood = untypedMutation({ args: {}, handler: (ctx) => {
  const line = "x".repeat(1024 * 1024);
  for (let i = 0; i < 100; i++) ctx.log.info(line);
} });
`,
  "http.ts": `
import { httpAction, httpRouter } from "syncline/server";
const http = httpRouter();
http.route({ path: "/hello", method: "GET", handler: httpAction((ctx) => { ctx.log.info("greeting"); return new Response("hello"); }) });
http.route({ path: "/broken", method: "GET", handler: httpAction(() => { throw new Error("a bug of a route"); }) });
export default http;
`,
};

const account = { email: "ada@example.com", password: "correct horse" };
const retention = { keepMs: logLimits.keepMsDefault, bytesMax: logLimits.bytesDefault };

async function setUp(server: TestServer) {
  const token = new URLSearchParams(new URL(server.setupLink ?? "").hash.slice(1)).values().next().value;
  const { body: admin } = await server.post("/api/auth/admin/setup", {
    token,
    email: "root@example.com",
    password: "correct horse",
  });
  const { body: user } = await server.post("/api/auth/signup", account);
  return { admin, user };
}

/** A page of the log. */
async function logs(server: TestServer, bearer: string, query: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/api/admin/logs?${new URLSearchParams(query)}`, {
    headers: { Authorization: `Bearer ${bearer}` },
  });
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return body;
}

const call = (server: TestServer, path: string, args: object = {}, bearer?: string) =>
  server.post(
    `/api/${path === "list" || path === "count" ? "query" : path === "act" ? "action" : "mutation"}`,
    {
      path: `notes:${path}`,
      args,
    },
    bearer === undefined ? {} : { bearer },
  );

Deno.test("[EL1] [EL2] [LS1] the log of a running server", async (t) => {
  await using server = await startTestServer({
    functions,
    config: { executionLog: retention },
  });
  const { admin, user } = await setUp(server);
  const bearer: string = admin.accessToken;

  await t.step("[EL2] [LS2] only administrators can read it and its stream", async () => {
    const { body: second } = await server.post("/api/auth/admin/signin", {
      email: "root@example.com",
      password: "correct horse",
    });
    await server.post("/api/auth/signout", {}, { bearer: second.accessToken });
    const { body: acting } = await server.post("/api/admin/impersonate", { userId: user.userId }, { bearer });
    const strangers: readonly (readonly [name: string, token: string | null])[] = [
      ["guest", null],
      ["user", user.accessToken],
      ["ended administrator", second.accessToken],
      ["administrator who acts as a user", acting.accessToken],
      ["forged", `${bearer.slice(0, -4)}AAAA`],
    ];
    for (const [name, token] of strangers) {
      for (
        const path of ["/api/admin/logs", "/api/admin/logs/stream", `/api/admin/logs/stream?token=${bearer}`]
      ) {
        const response = await fetch(`${server.url}${path}`, {
          headers: token === null ? {} : { Authorization: `Bearer ${token}` },
        });
        const { errorData } = await response.json();
        assert.deepEqual([response.status, errorData?.code], [401, "invalid_token"], `${name} ${path}`);
      }
    }
  });

  await t.step("[EL1] [EL4] contents of a run of each kind", async () => {
    const { body: first } = await call(server, "add", { text: "one two" }, user.accessToken);
    const { body: second } = await call(server, "add", { text: "three" });
    await call(server, "list");
    await (await fetch(`${server.url}/hello`)).text();
    const { runs, log } = await logs(server, bearer, { system: "false" });
    assert.deepEqual([log.dropped, log.lost, log.trouble], [0, 0, null]);
    const [route, query, anonymous, mutation] = runs;
    const served: string = runs[0].version;
    assert.match(served, /^[0-9a-f]{32}$/);
    const found = await logs(server, bearer, { system: "false", version: served.slice(0, 8) });
    assert.deepEqual(found.runs, runs);
    const other = await logs(server, bearer, { version: served[0] === "0" ? "1000" : "0000" });
    assert.deepEqual(other.runs, []);
    assert.equal(mutation.function, "notes:add");
    assert.equal(mutation.caller, `user:${user.userId}`);
    assert.deepEqual(mutation.logLines, ['[INFO] Adding a note text="one two" length=7']);
    assert.deepEqual([mutation.kind, mutation.outcome, mutation.level], ["mutation", "success", "INFO"]);
    assert.deepEqual([mutation.documentsRead, mutation.documentsWritten], [0, 1]);
    assert.ok(mutation.indexRowsWritten >= 2, "the index by text and that by creation time");
    assert.equal(anonymous.caller, null);
    // The server commits by itself, too, so these timestamps may be further apart.
    assert.deepEqual([mutation.ts, anonymous.ts], [first.ts, second.ts]);
    assert.equal(query.function, "notes:list");
    assert.ok(query.ts >= second.ts);
    assert.deepEqual([query.documentsRead, query.indexRowsRead, query.documentsWritten], [2, 2, 0]);
    assert.deepEqual([route.kind, route.function, route.logLines], ["route", "GET /hello", [
      "[INFO] greeting",
    ]]);
    for (const run of runs) {
      assert.equal(run.version, served);
      assert.ok(run.durationMs >= 0 && run.queuedMs >= 0 && Date.now() - run.at < 60_000);
    }
    assert.equal(new Set(runs.map(({ requestId }: { requestId: string }) => requestId)).size, runs.length);
  });

  await t.step(
    "[EL5] calls of an action have its request id, and their lines are in the action's run too",
    async () => {
      await call(server, "act", { text: "from an action" });
      const { runs: [action] } = await logs(server, bearer, { function: "notes:act" });
      const { runs } = await logs(server, bearer, { request: action.requestId });
      const names = runs.map((run: { function: string }) => run.function);
      assert.deepEqual(names, ["notes:act", "notes:list", "notes:add"]);
      assert.deepEqual(action.logLines, [
        "[DEBUG] acting",
        '[INFO] Adding a note text="from an action" length=14',
      ]);
      assert.equal(action.ts, null);
    },
  );

  await t.step("[EL6] errors contain a stack trace in the author's files", async () => {
    await call(server, "fail");
    await call(server, "refuse");
    await server.post("/api/mutation", { path: "notes:add", args: { text: 3 } });
    await server.post("/api/mutation", { path: "notes:nothing", args: {} });
    const { runs } = await logs(server, bearer, { outcome: "error,user_error", system: "false" });
    const [unknown, args, refused, failed] = runs;
    assert.equal(failed.error.message, "a bug of mine");
    assert.match(failed.error.stack, /notes\.ts:\d+:\d+/);
    assert.equal(failed.level, "WARN");
    assert.deepEqual([refused.error.kind, refused.error.code], ["user", "no_way"]);
    assert.deepEqual([args.error.kind, unknown?.error.kind], ["args", "unknown_function"]);
  });

  await t.step("[EL7] a rerun of a subscription is a run, also without changes", async () => {
    await using socket = await server.socket();
    socket.send({
      type: "ModifyQuerySet",
      baseVersion: 0,
      newVersion: 1,
      modifications: [{ type: "Add", queryId: 1, udfPath: "notes:count", args: {} }],
    });
    await socket.message(({ type, endVersion }) => type === "Transition" && endVersion.querySet === 1);
    const before = (await logs(server, bearer, { function: "notes:count" })).runs.length;
    const { body: added } = await call(server, "add", { text: "one more" });
    let runs = [];
    while (runs.length === before || runs.length === 0) {
      const page = await logs(server, bearer, { function: "notes:count" });
      runs = page.runs;
    }
    assert.deepEqual(runs[0].logLines, ["[INFO] counted"]);
    assert.ok(runs[0].ts >= added.ts && runs[1].ts < added.ts);
  });

  await t.step(
    "[EL1] [EL6] a scheduled function is logged under its own name, with its own failure",
    async () => {
      const { runs: before } = await logs(server, bearer, { function: "notes:fail" });
      await call(server, "later");
      let runs = before;
      while (runs.length === before.length) {
        ({ runs } = await logs(server, bearer, { function: "notes:fail" }));
      }
      assert.deepEqual([runs[0].outcome, runs[0].error.message], ["error", "a bug of mine"]);
      assert.match(runs[0].error.stack, /notes\.ts:\d+:\d+/);
      assert.ok(runs[0].logLines.includes("[WARN] about to fail"));
    },
  );

  await t.step("[EL8] filters, alone and combined", async () => {
    const names = async (query: Record<string, string>) =>
      (await logs(server, bearer, { system: "false", ...query })).runs
        .map((run: { function: string }) => run.function);
    assert.deepEqual(await names({ text: "A BUG of" }), ["notes:fail", "notes:fail"]);
    assert.deepEqual(await names({ text: "no_way" }), ["notes:refuse"]);
    assert.deepEqual(await names({ text: "one", function: "notes:add", caller: `user:${user.userId}` }), [
      "notes:add",
    ]);
    assert.deepEqual(await names({ level: "warn" }), ["notes:fail", "notes:fail"]);
    assert.deepEqual(await names({ kind: "route,action" }), ["notes:act", "GET /hello"]);
    assert.deepEqual(await names({ function: "GET*" }), ["GET /hello"]);
    assert.deepEqual(await names({ function: "notes:refuse,notes:fail" }), [
      "notes:fail",
      "notes:refuse",
      "notes:fail",
    ]);
    assert.deepEqual(await names({ from: "2100-01-01T00:00:00Z" }), []);
    assert.deepEqual(await names({ to: "2001-01-01T00:00:00Z" }), []);
    assert.deepEqual(await names({ text: "nobody wrote this" }), []);
    assert.deepEqual(await names({ caller: "anonymous", function: "notes:refuse" }), ["notes:refuse"]);
    assert.deepEqual(await names({ function: "notes:never" }), []);
    assert.deepEqual(await names({ minMs: "900000" }), []);
    const { runs: [slowest] } = await logs(server, bearer, { minMs: "1", limit: "1" });
    assert.ok(slowest === undefined || slowest.durationMs >= 1);
    const { runs } = await logs(server, bearer, { system: "true" });
    assert.ok(runs.every((run: { function: string }) => run.function.startsWith("_")));
  });

  await t.step(
    "[EL9] pages continue where the last one ended, newest first, and cursors are validated",
    async () => {
      const { runs: all, cursor: none } = await logs(server, bearer, { limit: "500" });
      assert.equal(none, null);
      const ids: number[] = all.map((run: { id: number }) => run.id);
      assert.deepEqual(ids, ids.toSorted((a, b) => b - a));
      const found: number[] = [];
      for (let cursor: string | null = String(ids[0]! + 1); cursor !== null;) {
        const page = await logs(server, bearer, { limit: "3", cursor });
        found.push(...page.runs.map((run: { id: number }) => run.id));
        cursor = page.cursor;
      }
      assert.deepEqual(found, ids);
    },
  );

  await t.step("[EL10] invalid parameters are rejected by name", async () => {
    const bad: readonly Record<string, string>[] = [
      { cursor: "x" },
      { cursor: "99999999999999999999" },
      { cursor: "-1" },
      { limit: "0" },
      { limit: "501" },
      { kind: "thing" },
      { outcome: "fine" },
      { level: "LOUD" },
      { from: "yesterday" },
      { caller: "ada" },
      { request: "../x" },
      { minMs: "fast" },
      { version: "abc" },
      { version: "master" },
      { system: "maybe" },
      { function: " , " },
      { text: "x".repeat(logLimits.textCharsMax + 1) },
      { histogram: "100000" },
      { fnuction: "notes:add" },
      { histogram: "10", from: "2100-01-01T00:00:00Z" },
    ];
    for (const query of bad) {
      const response = await fetch(`${server.url}/api/admin/logs?${new URLSearchParams(query)}`, {
        headers: { Authorization: `Bearer ${bearer}` },
      });
      const { errorData, errorMessage } = await response.json();
      assert.deepEqual([response.status, errorData.code], [400, "bad_request"], JSON.stringify(query));
      assert.ok(Object.keys(query).some((name) => errorMessage.includes(name)), errorMessage);
    }
    const response = await fetch(`${server.url}/api/admin/logs/stream`, {
      headers: { Authorization: `Bearer ${bearer}`, "Last-Event-ID": "not one" },
    });
    assert.equal(response.status, 400);
    await response.body?.cancel();
  });

  await t.step("[EL11] the histogram counts the same runs", async () => {
    const query = { system: "false", function: "notes:add" };
    const { runs } = await logs(server, bearer, { ...query, limit: "500" });
    for (const bars of ["1", "60", "240"]) {
      const { histogram } = await logs(server, bearer, { ...query, histogram: bars });
      const successes = histogram.outcomes.indexOf("success");
      const counted = histogram.bars.reduce((sum: number, bar: number[]) => sum + (bar[successes] ?? 0), 0);
      const good = runs.filter(({ outcome }: { outcome: string }) => outcome === "success").length;
      assert.equal(counted, good, `${bars} bars`);
    }
    const { histogram } = await logs(server, bearer, { text: "a bug of mine", histogram: "10" });
    assert.equal(histogram.bars.flat().reduce((sum: number, runs: number) => sum + runs, 0), 2);
    assert.equal(histogram.countedFrom, null);
  });

  await t.step("[EL12] 100 MB of log lines of one call are truncated and marked", async () => {
    await call(server, "flood");
    const { runs: [flood] } = await logs(server, bearer, { function: "notes:flood" });
    const chars = flood.logLines.join("").length;
    assert.ok(chars < logLimits.linesCharsMax + 1_000, String(chars));
    assert.match(flood.logLines.at(-1), /more log lines were truncated/);
    assert.match(flood.logLines[0], /\.\.\.$/);
  });

  const stream = `${server.url}/api/admin/logs/stream`;
  await t.step(
    "[LS1] [LS5] [LS6] the stream reports matching runs, and resumes after a given one",
    async () => {
      let last: number;
      {
        await using reader = await EventReader.open(`${stream}?function=notes:add`, {
          Authorization: `Bearer ${bearer}`,
        });
        await call(server, "list");
        await call(server, "add", { text: "streamed" });
        const run = await reader.run();
        assert.deepEqual(run.logLines, ["[INFO] Adding a note text=streamed length=8"]);
        assert.ok(reader.comments > 0, "a heartbeat stands first");
        last = run.id;
      }
      await call(server, "add", { text: "while away" });
      await call(server, "list");
      await using reader = await EventReader.open(`${stream}?function=notes:add`, {
        Authorization: `Bearer ${bearer}`,
        "Last-Event-ID": String(last),
      });
      assert.match((await reader.run()).logLines[0], /while away/);
      await call(server, "add", { text: "back again" });
      assert.match((await reader.run()).logLines[0], /back again/);
      // A page without runs names the newest run of the log as well.
      const headers = { Authorization: `Bearer ${bearer}` };
      const page = await fetch(`${server.url}/api/admin/logs?function=notes:missing`, { headers });
      const { runs, lastId } = await page.json();
      assert.deepEqual(runs, []);
      await call(server, "add", { text: "after the page" });
      await using later = await EventReader.open(`${stream}?function=notes:add`, {
        ...headers,
        "Last-Event-ID": String(lastId),
      });
      assert.match((await later.run()).logLines[0], /after the page/);
    },
  );

  await t.step(
    "[HC13] [WS17] the cause of a Server Error is found by its request id",
    async () => {
      const found = async (id: string | null) => {
        assert.match(id ?? "", /^[0-9a-z]{8,}$/);
        const { runs } = await logs(server, bearer, { request: id ?? "" });
        return runs.map(({ error, ...run }: Record<string, unknown> & { error?: { message: string } }) => [
          run["function"],
          error?.message,
        ]);
      };
      const EXPECTED = {
        query: ["notes:broken", "a bug of a query"],
        mutation: ["notes:fail", "a bug of mine"],
        action: ["notes:brokenAct", "a bug of an action"],
      };
      const http = new SynclineHttpClient(server.url);
      const client = new SynclineClient(server.url);
      try {
        for (const kind of ["query", "mutation", "action"] as const) {
          const [path = "", message] = EXPECTED[kind];
          const response = await fetch(`${server.url}/api/${kind}`, {
            method: "POST",
            body: JSON.stringify({ path, args: {} }),
          });
          assert.deepEqual([response.status, await response.json()], [500, {
            status: "error",
            errorMessage: "Server Error",
            errorData: null,
            logLines: [],
          }]);
          assert.deepEqual(await found(response.headers.get("Syncline-Request-Id")), [[path, message]]);
          for (const caller of [http, client]) {
            const call: (path: string) => Promise<unknown> = caller[kind].bind(caller);
            const error: unknown = await call(path).then(() => null, (error) => error);
            assert.ok(error instanceof FunctionError);
            assert.equal(error.message, "Server Error");
            assert.deepEqual(await found(error.requestId), [[path, message]]);
          }
        }
        const refused = await client.mutation("notes:refuse").then(() => null, (error) => error);
        assert.deepEqual([refused.code, refused.requestId], ["no_way", null]);
      } finally {
        client.close();
      }
      const route = await fetch(`${server.url}/broken`);
      assert.equal((await route.json()).errorMessage, "Server Error");
      assert.deepEqual(await found(route.headers.get("Syncline-Request-Id")), [[
        "GET /broken",
        "a bug of a route",
      ]]);
      // A foreign client gets exactly the fields of the contract.
      await using socket = await server.socket();
      socket.send({ type: "Mutation", requestId: 1, udfPath: "notes:fail", args: {} });
      const { arrivedAt: _, ...answer } = await socket.message(({ type }) => type === "MutationResponse");
      assert.deepEqual(answer, {
        type: "MutationResponse",
        requestId: 1,
        success: false,
        errorMessage: "Server Error",
        errorData: null,
        logLines: [],
      });
    },
  );

  await t.step("[LS4] the stream ends with `revoked` as soon as the session ends", async () => {
    const { body: other } = await server.post("/api/auth/admin/signin", {
      email: "root@example.com",
      password: "correct horse",
    });
    await using reader = await EventReader.open(stream, { Authorization: `Bearer ${other.accessToken}` });
    await server.post("/api/auth/signout", {}, { bearer: other.accessToken });
    let event = await reader.next();
    while (event?.event === "run") event = await reader.next();
    assert.equal(event?.event, "revoked");
    assert.equal(await reader.next(), null);
  });
});

Deno.test("[EL3] [EL13] the log survives restarts, and a damaged one is quarantined", async () => {
  await using server = await startTestServer({ functions, config: { executionLog: retention } });
  const { admin } = await setUp(server);
  const bearer: string = admin.accessToken;
  await call(server, "add", { text: "before" });
  await server.restart();
  const { runs } = await logs(server, bearer, { function: "notes:add" });
  assert.equal(runs.length, 1, "what ended just before the stop is there");
  await server.restart(async () => {
    const path = join(server.dataDir, "logs.db");
    await Deno.writeTextFile(
      path,
      "no database at all, but some text that is long enough to be read".repeat(100),
    );
    await Deno.remove(`${path}-wal`).catch(() => {});
  });
  await call(server, "add", { text: "after" });
  const after = await logs(server, bearer, { function: "notes:add" });
  assert.deepEqual(after.runs[0].logLines, ["[INFO] Adding a note text=after length=5"]);
  assert.equal(after.runs.length, 1);
  assert.equal(after.log.trouble, null);
  assert.ok(server.logged.some((line) => /Execution log unusable.*logs\.db\.unusable/.test(line)));
  assert.match(await Deno.readTextFile(join(server.dataDir, "logs.db.unusable")), /^no database/);
});

Deno.test("[EL14] a server without a log reports it", async () => {
  await using server = await startTestServer({ functions, config: { executionLog: null } });
  const { admin } = await setUp(server);
  for (const path of ["logs", "logs/stream"]) {
    const response = await fetch(`${server.url}/api/admin/${path}`, {
      headers: { Authorization: `Bearer ${admin.accessToken}` },
    });
    const { errorData, errorMessage } = await response.json();
    assert.deepEqual([response.status, errorData.code], [404, "not_found"]);
    assert.match(errorMessage, /--log-keep/);
  }
});
