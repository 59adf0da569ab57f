/** `GET /api/admin/stats` of a whole server. */
import assert from "node:assert/strict";
import { startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { logLimits } from "../../../mod/ops/limits.ts";

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`,
  "notes.ts": `
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const list = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").collect()).length });
export const fail = untypedMutation({ args: {}, handler: () => { throw new Error("a bug"); } });
`,
};

async function stats(server: TestServer, bearer: string | null) {
  const response = await fetch(`${server.url}/api/admin/stats`, {
    headers: bearer === null ? {} : { Authorization: `Bearer ${bearer}` },
  });
  return { status: response.status, body: await response.json() };
}

Deno.test("[ST1] [ST5] only administrators read the statistics", async () => {
  await using server = await startTestServer({
    functions,
    config: { executionLog: { keepMs: logLimits.keepMsDefault, bytesMax: logLimits.bytesDefault } },
  });
  const token = new URLSearchParams(new URL(server.setupLink ?? "").hash.slice(1)).values().next().value;
  const { body: admin } = await server.post("/api/auth/admin/setup", {
    token,
    email: "root@example.com",
    password: "correct horse",
  });
  const bearer: string = admin.accessToken;
  const { body: user } = await server.post("/api/auth/signup", {
    email: "ada@example.com",
    password: "correct horse",
  });
  const { body: acting } = await server.post("/api/admin/impersonate", { userId: user.userId }, { bearer });
  const { body: second } = await server.post("/api/auth/admin/signin", {
    email: "root@example.com",
    password: "correct horse",
  });
  await server.post("/api/auth/signout", {}, { bearer: second.accessToken });
  for (const stranger of [null, user.accessToken, acting.accessToken, second.accessToken]) {
    const { status, body } = await stats(server, stranger);
    assert.deepEqual([status, body.errorData.code], [401, "invalid_token"]);
  }
  for (const text of ["one", "two"]) {
    await server.post("/api/mutation", { path: "notes:add", args: { text } });
  }
  await server.post("/api/mutation", { path: "notes:fail", args: {} });
  for (let i = 0; i < 3; i++) await server.post("/api/query", { path: "notes:list", args: {} });
  await using socket = await server.socket();
  socket.send({
    type: "ModifyQuerySet",
    baseVersion: 0,
    newVersion: 1,
    modifications: [{ type: "Add", queryId: 1, udfPath: "notes:list", args: {} }],
  });
  await socket.message(({ type, endVersion }) => type === "Transition" && endVersion.querySet === 1);

  const { status, body } = await stats(server, bearer);
  assert.equal(status, 200);
  const of = (name: string) => body.functions.find((row: { function: string }) => row.function === name);
  assert.deepEqual([of("notes:add").minute.calls, of("notes:add").hour.documentsWritten], [2, 2]);
  assert.deepEqual([of("notes:fail").minute.errorRate, of("notes:fail").day.errors], [1, 1]);
  assert.equal(of("notes:list").minute.calls, 1);
  assert.equal(of("notes:list").minute.cacheHits, 3, "two calls and a subscription");
  assert.equal(of("notes:list").minute.documentsRead, 2);
  assert.ok(of("notes:add").minute.p50 > 0 && body.commitMs.minute.p99 > 0);
  assert.deepEqual([body.sync.sockets, body.sync.subscriptions], [1, 1]);
  assert.ok(body.sync.refreshBatches >= 1);
  assert.deepEqual(Object.keys(body.queues), ["mutations", "queries", "calls", "log"]);
  assert.equal(body.isolates.writer.running, 1);
  for (const role of ["writer", "reader", "runner"]) assert.equal(body.isolates[role].lost, 0, role);
  const { dropped, lost, trouble, streams } = body.log;
  assert.deepEqual({ dropped, lost, trouble, streams }, { dropped: 0, lost: 0, trouble: null, streams: 0 });
  assert.ok(body.history.length >= 1 && body.history.at(-1).calls + (body.history.at(-2)?.calls ?? 0) >= 4);
  assert.ok(body.memory.main > 0 && body.disk.database > 0 && body.disk.free > 0);
  let tables = body.tables;
  while (tables === null) ({ tables } = (await stats(server, bearer)).body);
  const notes = tables.tables.find(({ table }: { table: string }) => table === "notes");
  assert.equal(notes?.documents, 2);
  assert.ok(notes.bytes > 0 && notes.indexBytes > 0, JSON.stringify(notes));

  await server.restart();
  let row;
  while (row === undefined) {
    row = (await stats(server, bearer)).body.functions
      .find(({ function: name }: { function: string }) => name === "notes:add");
  }
  assert.equal(row.hour.calls, 2, "figures are kept through a restart");
});
