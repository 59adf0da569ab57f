/** `createTestServer`: what an app's own tests rely on. */
import assert from "node:assert/strict";
import {
  authEventArgs,
  createApi,
  createFunctions,
  defineProfile,
  defineSchema,
  defineTable,
  id,
  UserError,
} from "syncline/server";
import { createTestServer, FunctionError } from "syncline/test";
import { z } from "zod";
import { pause } from "../support/waiting.ts";

const chat = { functionsDir: new URL("../../examples/chat/functions", import.meta.url) };

const schema = defineSchema({
  notes: defineTable({ text: z.string(), author: id("_users").optional() }).index("by_author", ["author"]),
});
const { query, mutation, action, internalMutation } = createFunctions(schema);

const notes = {
  mine: query({
    args: {},
    handler: async (ctx) => {
      const author = ctx.auth.userId() ?? undefined;
      const rows = await ctx.db.query("notes").withIndex("by_author", (q) => q.eq("author", author))
        .collect();
      return rows.map(({ text }) => text);
    },
  }),
  add: mutation({
    args: { text: z.string() },
    handler: async (ctx, { text }) => {
      if (text === "") throw new UserError("empty", "Write something", { field: "text" });
      return await ctx.db.insert("notes", { text, author: ctx.auth.userId() ?? undefined });
    },
  }),
  whoAmI: query({
    handler: async (ctx) => {
      const userId = ctx.auth.userId();
      const user = userId === null ? null : await ctx.db.get(userId);
      return { user: user?.name ?? null, admin: ctx.auth.adminId() !== null };
    },
  }),
  time: query({ handler: () => [Date.now(), new Date().getTime(), Math.random()] }),
  timeOfMutation: mutation({ handler: () => Date.now() }),
  waitForever: mutation({ handler: () => new Promise<null>(() => {}) }),
  reach: mutation({ handler: () => fetch("http://127.0.0.1:1/") }),
  bug: mutation({
    handler: () => {
      throw new Error("a bug");
    },
  }),
  addTwice: action({
    args: { text: z.string() },
    handler: async (ctx, { text }): Promise<{ mine: string[]; env: Record<string, string>; now: number }> => {
      // deno-lint-ignore no-console -- what functions print is under test
      console.log("adding", text);
      await ctx.runMutation(api.notes.add, { text });
      await pause(1);
      await ctx.runMutation(api.notes.add, { text });
      return { mine: await ctx.runQuery(api.notes.mine), env: ctx.env, now: Date.now() };
    },
  }),
};

const modules = { schema: { default: schema }, notes };
const { api } = createApi<{ notes: typeof notes }>();

Deno.test("a test server starts about as fast as a few idle processes", async () => {
  const times: number[] = [];
  const processTimes: number[] = [];
  const isSlow = () => Math.min(...times) >= 4 * Math.min(...processTimes);
  // The first server compiles and warms up. On a busy machine, more rounds until some are undisturbed.
  for (let round = 0; round < 4 || (round < 20 && isSlow()); round++) {
    const startedAt = performance.now();
    {
      await using server = await createTestServer(chat);
      await server.query("channels:list");
    }
    const endedAt = performance.now();
    await new Deno.Command(Deno.execPath(), { args: ["eval", "0"] }).output();
    times.push(endedAt - startedAt);
    processTimes.push(performance.now() - endedAt);
  }
  const texts = [times, processTimes].map((each) => each.map((ms) => ms.toFixed(0)).join(", "));
  assert(!isSlow(), `ready after ${texts[0]} ms, processes ${texts[1]}`);
});

Deno.test("a mutation's effects are in every live query when it resolves", async () => {
  await using server = await createTestServer({ modules });
  const ada = await server.asUser("Ada");
  using subscription = ada.subscribe(api.notes.mine);
  assert.deepEqual(await subscription.next(), []);
  await ada.mutation(api.notes.add, { text: "a" });
  assert.deepEqual(subscription.results, [[], ["a"]]);
  await (await server.asUser("Grace")).mutation(api.notes.add, { text: "b" });
  assert.deepEqual(subscription.results, [[], ["a"]]);
});

Deno.test("users have their own data, the same address is the same user, and administrators are not users", async () => {
  await using server = await createTestServer({ modules });
  const [ada, again, admin] = [
    await server.asUser({ email: "ada@example.com", name: "Ada" }),
    await server.asUser({ email: "ada@example.com" }),
    await server.asAdmin(),
  ];
  assert.equal(again.userId, ada.userId);
  assert.notEqual(again.sessionId, ada.sessionId);
  await ada.mutation(api.notes.add, { text: "mine" });
  assert.deepEqual(await again.query(api.notes.mine), ["mine"]);
  assert.deepEqual(await server.query(api.notes.mine), []);
  assert.deepEqual(await ada.query(api.notes.whoAmI), { user: "Ada", admin: false });
  assert.deepEqual(await admin.query(api.notes.whoAmI), { user: null, admin: true });
  assert.deepEqual(await server.asAnonymous().query(api.notes.whoAmI), { user: null, admin: false });
});

Deno.test("PF1 OH1 users of tests have the app's profile and are passed to onUserCreated, as all users are", async () => {
  const auth = {
    profile: defineProfile({ role: z.enum(["member", "editor"]).default("member") }),
    onUserCreated: internalMutation({
      args: authEventArgs,
      handler: async (ctx, { user, by }) => {
        const role = (await ctx.db.get(user))?.["profile"]?.role;
        await ctx.db.insert("notes", { text: `${role} by ${by}`, author: user });
      },
    }),
  };
  await using server = await createTestServer({ modules: { ...modules, auth } });
  const ada = await server.asUser({ email: "ada@example.com", profile: { role: "editor" } });
  assert.deepEqual(await ada.query(api.notes.mine), ["editor by password"]);
  await server.asUser({ email: "ada@example.com" });
  assert.deepEqual(await (await server.asUser("Bob")).query(api.notes.mine), ["member by password"]);
  await assert.rejects(server.asUser({ name: "Eve", profile: { role: "owner" } }), /profile\.role/);
});

Deno.test("a session that ends makes its clients anonymous", async () => {
  await using server = await createTestServer({ modules });
  const ada = await server.asUser("Ada");
  using seen = ada.subscribe(api.notes.whoAmI);
  await seen.until(({ user }) => user === "Ada");
  server.endSession(ada);
  await seen.until(({ user }) => user === null);
});

Deno.test("the clock is frozen until it is advanced, in queries, mutations and actions", async () => {
  const start = Date.UTC(2031, 5, 1);
  await using server = await createTestServer({ modules, now: new Date(start) });
  const [now, date, random] = await server.query(api.notes.time);
  assert.deepEqual([now, date], [start, start]);
  assert.equal((await server.query(api.notes.time))[2], random, "chance repeats");
  await server.advance(90_000);
  assert.equal(server.now(), start + 90_000);
  assert.equal(await server.mutation(api.notes.timeOfMutation), start + 90_000);
  assert.equal((await server.query(api.notes.time))[0], start + 90_000);
  const { now: inAction } = await server.action(api.notes.addTwice, { text: "x" });
  assert.equal(inAction, start + 90_000);
  assert(Math.abs(Date.now() - start) > 1e9, "the test's own clock continues");
  await assert.rejects(server.advance(-1), RangeError);
});

Deno.test("actions call functions, and see the given environment and nothing of the process's own", async () => {
  Deno.env.set("SYNCLINE_TEST_SECRET", "hidden");
  await using server = await createTestServer({ modules, env: { KEY: "value" } });
  const ada = await server.asUser("Ada");
  const { mine, env } = await ada.action(api.notes.addTwice, { text: "x" });
  assert.deepEqual([mine, env], [["x", "x"], { KEY: "value" }]);
});

Deno.test("a mutation that awaits a promise that never resolves fails at its time limit", async () => {
  await using server = await createTestServer({ modules, callTimeoutMs: 1_000 });
  await assert.rejects(server.mutation(api.notes.waitForever), /longer than its limit of 1 seconds?/);
  await server.mutation(api.notes.add, { text: "goes on" });
  assert.deepEqual(await server.query(api.notes.mine), ["goes on"]);
});

Deno.test("queries and mutations have no network, and everything outside them keeps its own", async () => {
  const realFetch = fetch;
  {
    await using server = await createTestServer({ modules });
    await assert.rejects(server.mutation(api.notes.reach), /fetch is not available in queries and mutations/);
    await assert.rejects(fetch("http://127.0.0.1:1/"), TypeError);
  }
  assert.equal(fetch, realFetch);
});

Deno.test("errors: the app's own have code and data, bugs the real message and the author's file", async () => {
  await using server = await createTestServer({ modules });
  await assert.rejects(server.mutation(api.notes.add, { text: "" }), (error) => {
    assert(error instanceof FunctionError);
    assert.deepEqual([error.code, error.data, error.udfPath], ["empty", { field: "text" }, "notes:add"]);
    return true;
  });
  await assert.rejects(server.mutation(api.notes.bug), { message: "a bug" });
  await assert.rejects(server.mutation("notes:add", { text: 1 }), /args\.text/);
  await assert.rejects(server.query("notes:nothing"), /no function "notes:nothing"/);
  await using real = await createTestServer({ modules, dev: false });
  await assert.rejects(real.mutation(api.notes.bug), { message: "Server Error" });
});

Deno.test("run() works on the database with the app's rights, and is undone when it throws", async () => {
  await using server = await createTestServer({ modules });
  const id = await server.run((ctx) => ctx.db.insert("notes", { text: "arranged" }));
  assert.equal((await server.run((ctx) => ctx.db.get(id)))?.text, "arranged");
  await assert.rejects(
    server.run(async (ctx) => {
      await ctx.db.delete(id);
      throw new Error("no");
    }),
    { message: "no" },
  );
  assert.deepEqual(await server.query(api.notes.mine), ["arranged"]);
  await assert.rejects(
    server.run((ctx) => ctx.db.query("_sessions" as never).collect()),
    /belongs to the service/,
  );
});

Deno.test("a client of the server is a real one: optimistic updates and all", async () => {
  await using server = await createTestServer({ modules });
  const { client } = server.asAnonymous();
  const seen: unknown[] = [];
  const firstResult = Promise.withResolvers<void>();
  client.subscribe(api.notes.mine, {}, (texts) => {
    seen.push(texts);
    firstResult.resolve();
  });
  await firstResult.promise;
  const sent = client.mutation(api.notes.add, { text: "real" }, {
    optimisticUpdate: (store) => store.setQuery(api.notes.mine, {}, ["expected"]),
  });
  await sent;
  await server.settled();
  assert.deepEqual(seen, [[], ["expected"], ["real"]]);
});

Deno.test("two servers side by side do not see one another", async () => {
  await using one = await createTestServer({ modules });
  await using other = await createTestServer({ modules, now: 0 });
  await Promise.all([
    one.mutation(api.notes.add, { text: "one" }),
    other.mutation(api.notes.add, { text: "other" }),
  ]);
  assert.deepEqual(await Promise.all([one, other].map((server) => server.query(api.notes.mine))), [["one"], [
    "other",
  ]]);
  assert.equal(await other.mutation(api.notes.timeOfMutation), 0);
});

Deno.test("a server without functions, or with a broken app, is refused with the reason", async () => {
  await assert.rejects(createTestServer({}), /needs functionsDir/);
  await assert.rejects(
    createTestServer({ modules: { schema: { default: {} as typeof schema } } }),
    /schema\.ts must export the schema as its default/,
  );
});
