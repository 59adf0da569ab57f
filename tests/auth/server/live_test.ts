import assert from "node:assert/strict";
import { join } from "node:path";
import { startTestServer, type TestServer, type TestSocket } from "./test_server.ts";
import { freePort } from "../../support/ports.ts";
import { pause } from "../../support/waiting.ts";
import { startSmtpServer } from "../mail/smtp_server.ts";

const password = "correct horse";

const SCHEMA = `
import { defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ author: id("_users"), text: z.string() }).index("by_author", ["author"]) });
`;

const NOTES = `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({
  args: { text: z.string() },
  handler: (ctx, { text }) => ctx.db.insert("notes", { author: ctx.auth.userId(), text }),
});
export const mine = untypedQuery({
  args: {},
  handler: async (ctx) => {
    const rows = await ctx.db.query("notes").withIndex("by_author", (q) => q.eq("author", ctx.auth.userId())).collect();
    return rows.map((row) => row.text);
  },
});
export const who = untypedQuery({ args: {}, handler: (ctx) => [ctx.auth.userId(), ctx.auth.adminId(), ctx.auth.sessionId()] });
export const emails = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("_users").collect()).map((user) => user.email),
});
// Callers do not see the messages of internal errors, so that these functions return them.
const messageOf = async (run) => {
  try {
    await run();
    return null;
  } catch (error) {
    return error.message;
  }
};
export const read = untypedQuery({
  args: { table: z.string() },
  handler: (ctx, { table }) => messageOf(() => ctx.db.query(table).collect()),
});
export const write = untypedMutation({
  args: { id: z.string() },
  handler: (ctx, { id }) => messageOf(() => ctx.db.delete(id)),
});
const target = { path: z.string(), args: z.any() };
export const callQuery = untypedQuery({
  args: target,
  handler: (ctx, { path, args }) => messageOf(() => ctx.runQuery(path, args)),
});
export const callMutation = untypedMutation({
  args: target,
  handler: (ctx, { path, args }) => messageOf(() => ctx.runMutation(path, args)),
});
export const callFromAction = untypedAction({
  args: target,
  handler: async (ctx, { path, args }) => [
    await messageOf(() => ctx.runQuery(path, args)),
    await messageOf(() => ctx.runMutation(path, args)),
  ],
});
`;

const functions = { "schema.ts": SCHEMA, "notes.ts": NOTES };

Deno.test("accounts of a server", async (t) => {
  await using server = await startTestServer({ functions });

  await t.step("app code reads users, and cannot access other account tables", async () => {
    const { body: tokens } = await server.post("/api/auth/signup", { email: "a@example.com", password });
    const call = async (kind: string, path: string, args = {}) =>
      (await server.post(`/api/${kind}`, { path, args })).body;
    assert.deepEqual((await call("query", "notes:emails")).value, ["a@example.com"]);
    for (const table of ["_passwords", "_sessions", "_refresh_tokens", "_codes", "_admins"]) {
      assert.match((await call("query", "notes:read", { table })).value, /belongs to the service/);
    }
    assert.match((await call("mutation", "notes:write", { id: tokens.userId })).value, /cannot write/);
    const secret = { path: "_system/auth:findCredential", args: { kind: "user", email: "a@example.com" } };
    const session = { path: "_system/auth:findSession", args: { sessionId: "x" } };
    assert.match((await call("query", "notes:callQuery", session)).value, /There is no function/);
    assert.match((await call("mutation", "notes:callMutation", secret)).value, /There is no function/);
    for (const { path, args } of [secret, session]) {
      for (const error of (await call("action", "notes:callFromAction", { path, args })).value) {
        assert.match(error, /There is no function/);
      }
      for (const kind of ["query", "mutation", "action"]) {
        assert.match((await call(kind, path, args)).errorMessage, /There is no function/);
      }
    }
  });

  await t.step(
    "AR2 signing out ends the sockets of the session, and no other, with session has ended",
    async () => {
      const { body: tokens } = await server.post("/api/auth/signup", { email: "many@example.com", password });
      const { body: other } = await server.post("/api/auth/signin", { email: "many@example.com", password });
      const sockets: TestSocket[] = [];
      for (let i = 0; i < 50; i++) sockets.push(await server.socket(tokens.accessToken));
      await using bystander = await server.socket(other.accessToken);
      await Promise.all([...sockets, bystander].map((socket) => socket.identityVersion(1)));
      await server.post("/api/auth/signout", {}, { bearer: tokens.accessToken });
      for (const socket of sockets) {
        await socket.closed;
        const last = socket.messages.at(-1);
        assert.deepEqual([last.type, last.error], ["AuthError", "session has ended"]);
      }
      bystander.send({ type: "Mutation", requestId: 1, udfPath: "notes:add", args: { text: "still here" } });
      assert.equal((await bystander.message(({ type }) => type === "MutationResponse")).success, true);
    },
  );

  await t.step("functions know their caller, and query results are separate for each caller", async () => {
    const [a, b] = await Promise.all(["b@example.com", "c@example.com"].map(async (email) => {
      const { body } = await server.post("/api/auth/signup", { email, password });
      const call = async (kind: string, path: string, args = {}) =>
        (await server.post(`/api/${kind}`, { path, args }, { bearer: body.accessToken })).body;
      await call("mutation", "notes:add", { text: email });
      return { userId: body.userId, call };
    }));
    assert.ok(a && b);
    for (const { userId, call } of [a, b]) {
      const [who] = [(await call("query", "notes:who")).value];
      assert.deepEqual(who.slice(0, 2), [userId, null]);
      assert.match(who[2], /^[0-9a-z]{26}$/);
    }
    assert.deepEqual((await a.call("query", "notes:mine")).value, ["b@example.com"]);
    assert.deepEqual((await b.call("query", "notes:mine")).value, ["c@example.com"]);
    const anonymous = await server.post("/api/query", { path: "notes:who", args: {} });
    assert.deepEqual(anonymous.body.value, [null, null, null]);
    const wrong = await server.post("/api/query", { path: "notes:who", args: {} }, { bearer: "x.y.z" });
    assert.deepEqual([wrong.status, wrong.body.errorData.code], [401, "invalid_token"]);
  });

  await t.step("the setup link is valid until the first administrator is created", async () => {
    const [, token] = (server.setupLink ?? "").split("#svc_setup_token=");
    const page = await fetch(server.setupLink ?? "");
    assert.match(await page.text(), /built\/app\.js/);
    const { status } = await server.post("/api/auth/admin/setup", {
      token,
      email: "admin@example.com",
      password,
    });
    assert.equal(status, 200);
    await server.restart();
    assert.equal(server.setupLink, null);
  });

  await t.step(
    "AT4 deleting auth_secret.key signs all users out, logs the other consequences, and keeps all accounts",
    async () => {
      const credential = { email: "signed-out@example.com", password };
      const { body: tokens } = await server.post("/api/auth/signup", credential);
      await server.restart();
      const call = (bearer: string) => server.post("/api/query", { path: "notes:who", args: {} }, { bearer });
      assert.equal((await call(tokens.accessToken)).status, 200);
      await server.restart(() => Deno.remove(join(server.dataDir, "auth_secret.key")));
      assert.equal((await call(tokens.accessToken)).status, 401);
      const refused = await server.post("/api/auth/refresh", { refreshToken: tokens.refreshToken });
      assert.equal(refused.body.errorData.code, "invalid_refresh_token");
      const { status, body } = await server.post("/api/auth/signin", credential);
      assert.deepEqual([status, body.userId], [200, tokens.userId]);
      assert.match(server.logged.join("\n"), /warn .*all users are signed out.*signed URLs.*settings/);
    },
  );
});

Deno.test("AR3 AR4 a token that expires ends its socket; a refresh in time does not disturb it", async () => {
  // Long enough for timely refreshes on a busy machine.
  await using server = await startTestServer({ functions, accounts: { accessTokenMs: 30_000 } });
  const { body: first } = await server.post("/api/auth/signup", { email: "a@example.com", password });
  await using lazy = await server.socket(first.accessToken);
  await using fresh = await server.socket(first.accessToken);
  await Promise.all([lazy.identityVersion(1), fresh.identityVersion(1)]);
  let { refreshToken } = first;
  // Refreshes until the other socket has closed, so that most of the last token's lifetime remains then.
  for (let version = 1; lazy.closeCode === null; version++) {
    assert.ok(version <= 40, "the socket stays open after its token has expired");
    await pause(3_000);
    const { body } = await server.post("/api/auth/refresh", { refreshToken });
    fresh.send({ type: "Authenticate", baseVersion: version, token: body.accessToken });
    await fresh.identityVersion(version + 1);
    ({ refreshToken } = body);
  }
  assert.equal(lazy.messages.at(-1).error, "access token expired");
  fresh.send({ type: "Mutation", requestId: 1, udfPath: "notes:add", args: { text: "x" } });
  assert.equal((await fresh.message(({ type }) => type === "MutationResponse")).success, true);
});

Deno.test("emails are sent by the mail server; while it is down no request waits, and the email is sent later", async () => {
  // No other process takes the port while no server listens on it.
  const port = freePort();
  const smtp = await startSmtpServer({ port });
  await using server = await startTestServer({
    accounts: {
      smtp: { url: `smtp://127.0.0.1:${port}`, from: "App <no-reply@example.com>" },
      appName: "App",
    },
  });
  await server.post("/api/auth/signup", { email: "a@example.com", password });
  const verify = await smtp.mailTo("a@example.com");
  assert.match(verify.text ?? "", /account with App/);
  await smtp[Symbol.asyncDispose]();
  const { status, body } = await server.post("/api/auth/magic/request", { email: "b@example.com" });
  assert.deepEqual([status, body], [200, {}]);
  await server.logs("warn Mail failed, will be retried");
  await using again = await startSmtpServer({ port });
  const magic = await again.mailTo("b@example.com");
  const code = /\b\d{6}\b/.exec((magic.text ?? "").replace(/https?:\S+/, ""))?.[0];
  assert.equal((await server.post("/api/auth/magic/verify", { email: "b@example.com", code })).status, 200);
});

Deno.test("AE2 forwarded addresses are used only behind a trusted proxy", async (t) => {
  const statusesOf = async (server: TestServer) => {
    const statuses = new Set<number>();
    // More than a client is allowed in the time that they take on a busy machine.
    for (let i = 0; i < 100; i++) {
      const headers = { "X-Forwarded-For": `198.51.100.${i}` };
      const body = { email: `a${i}@example.com` };
      statuses.add((await server.post("/api/auth/magic/request", body, { headers })).status);
    }
    return [...statuses];
  };
  {
    await using direct = await startTestServer({ config: { trustedProxies: [] } });
    assert.deepEqual(await statusesOf(direct), [200, 429]);
  }
  await using server = await startTestServer({ config: { trustedProxies: ["127.0.0.1"] } });
  assert.deepEqual(await statusesOf(server), [200]);

  await t.step("RT3 many tabs that refresh one session at the same time stay signed in", async () => {
    let { body: tokens } = await server.post("/api/auth/signup", { email: "tabs@example.com", password });
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(
        Array.from(
          { length: 10 },
          () => server.post("/api/auth/refresh", { refreshToken: tokens.refreshToken }),
        ),
      );
      const [winner, ...more] = answers.filter(({ status }) => status === 200);
      assert.equal(more.length, 0);
      assert.ok(
        answers.every(({ status, body }) => status === 200 || body.errorData.code === "stale_refresh_token"),
      );
      assert.ok(winner);
      tokens = winner.body;
    }
    assert.equal(
      (await server.post("/api/query", { path: "_auth:account", args: {} }, { bearer: tokens.accessToken }))
        .status,
      200,
    );
  });
});
