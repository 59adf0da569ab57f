/** Shared subscriptions: one run for all sockets with access to the result, and none for others. */
import assert from "node:assert/strict";
import { sharedQueryLimits } from "../../mod/sync/limits.ts";
import { anonymous, type Identity } from "../../mod/functions/identity.ts";
import type { Log } from "../../mod/kit/log.ts";
import { World } from "./support/world.ts";
import { settle } from "./support/test_socket.ts";

function user(id: string, sessionId: string): Identity {
  return { principal: `user:${id}`, userId: id, adminId: null, sessionId };
}

Deno.test("SH1 a query that does not depend on the caller runs once for all sockets", async () => {
  const world = new World();
  const sockets = Array.from({ length: 50 }, () => world.connected());
  for (const [i, socket] of sockets.entries()) {
    socket.authenticate(0, `u${i}.s${i}`);
    socket.add(0, "get", { key: "a" });
  }
  await settle();
  assert.equal(world.host.runs.length, 1);
  world.host.write({ a: 1 });
  await settle();
  assert.equal(world.host.runs.length, 2);
  for (const socket of sockets) assert.equal(socket.value(0), 1);
});

Deno.test("SH1 arguments are compared independently of key order", async () => {
  const world = new World();
  const [one, two] = [world.connected(), world.connected()];
  one.add(0, "get", { key: "a", x: 1 });
  two.add(0, "get", { x: 1, key: "a" });
  await settle();
  assert.equal(world.host.runs.length, 1);
});

Deno.test("SH2 a query that reads the principal runs once a principal, all anonymous callers together", async () => {
  const world = new World();
  const tokens = ["u1.s1", "u1.s2", "u2.s3", null, null];
  const sockets = tokens.map(() => world.connected());
  for (const [i, socket] of sockets.entries()) {
    if (tokens[i] !== null) socket.authenticate(0, tokens[i] ?? null);
    socket.add(0, "me");
  }
  await settle();
  const seen = sockets.map((socket) => (socket.value(0) as { principal: unknown }).principal);
  assert.deepEqual(seen, ["user:u1", "user:u1", "user:u2", null, null]);
  world.host.runs.length = 0;
  world.host.write({ a: 1 });
  await settle();
  assert.equal(world.host.runs.length, 3);
});

Deno.test("SH2 a query that reads the session runs once a session", async () => {
  const world = new World();
  const sockets = [world.connected(), world.connected(), world.connected()];
  for (const [i, token] of ["u1.s1", "u1.s1", "u1.s2"].entries()) {
    sockets[i]?.authenticate(0, token);
    sockets[i]?.add(0, "session");
  }
  await settle();
  assert.deepEqual(sockets.map((socket) => (socket.value(0) as { session: unknown }).session), [
    "s1",
    "s1",
    "s2",
  ]);
  world.host.runs.length = 0;
  world.host.write({ a: 1 });
  await settle();
  assert.equal(world.host.runs.length, 2);
});

Deno.test("SH5 a ModifyQuerySet whose queries are live elsewhere is answered without a run", async () => {
  const world = new World();
  const first = world.connected();
  first.add(0, "me");
  first.authenticate(0, "u1.s1");
  await settle();
  const runs = world.host.runs.length;
  const second = world.connected();
  second.authenticate(0, "u1.s2");
  second.add(5, "me");
  await settle();
  assert.deepEqual(second.value(5), { principal: "user:u1", value: null });
  assert.equal(world.host.runs.length, runs);
});

Deno.test("SH4 a scope that widens discloses no result of others, and one that narrows is shared again", async () => {
  const world = new World();
  const sockets = [world.connected(), world.connected(), world.connected(), world.connected()];
  for (const [i, token] of ["u1.s1", "u1.s2", "u2.s3", null].entries()) {
    sockets[i]?.authenticate(0, token);
    sockets[i]?.add(0, "sometimesMe");
  }
  const values = () => sockets.map((socket) => socket.value(0));
  await settle();
  assert.deepEqual(values(), Array(4).fill("all undefined"));
  for (let round = 0; round < 3; round++) {
    world.host.write({ private: true, a: round });
    await settle();
    assert.deepEqual(values(), [`user:u1 ${round}`, `user:u1 ${round}`, `user:u2 ${round}`, `null ${round}`]);
    world.host.write({ private: false, a: round });
    await settle();
    assert.deepEqual(values(), Array(4).fill(`all ${round}`));
    world.host.runs.length = 0;
    world.host.write({ a: -1 });
    await settle();
    assert.equal(world.host.runs.length, 1, "shared by all again");
    assert.equal(world.hub.load.sharedQueries, 1);
  }
});

Deno.test("SH4 a result found to be personal after the first run is sent only to its caller", async () => {
  const world = new World({ auto: false });
  const [one, two] = [world.connected(), world.connected()];
  one.authenticate(0, "u1.s1");
  two.authenticate(0, "u2.s2");
  await settle();
  one.add(0, "me");
  two.add(0, "me");
  await settle();
  world.host.pin();
  await settle();
  assert.deepEqual(world.host.pathsInFlight, [["me"]]);
  world.host.answerAll();
  await settle();
  assert.deepEqual(one.value(0), { principal: "user:u1", value: null });
  assert.equal(two.results.size, 0);
  world.host.pin();
  world.host.answerAll();
  await settle();
  assert.deepEqual(two.value(0), { principal: "user:u2", value: null });
});

Deno.test("SH4 external callers without a session do not share results that depend on their claims", async () => {
  const world = new World();
  const caller = (role: string): Identity => ({
    principal: "user:x",
    userId: "x",
    adminId: null,
    sessionId: null,
    claims: { role },
  });
  world.host.define("session", (ctx) => {
    ctx.session();
    return world.host.runs.length;
  });
  const ask = (identity: Identity) =>
    world.hub.query({ udfPath: "session", args: {}, identity, origin: "client" });
  const answers = await Promise.all([caller("reader"), caller("editor"), caller("reader")].map(ask));
  assert.equal(world.host.runs.length, 2);
  assert.equal(answers[0], answers[2]);
});

Deno.test("SH6 a slow query delays only its own sockets, which get one consistent step", async () => {
  const world = new World({ auto: false });
  const [both, fast] = [world.connected(), world.connected()];
  const run = async (path?: string) => {
    await settle();
    world.host.pin();
    await settle();
    if (path === undefined) { while (world.host.refreshBatches.length > 0) world.host.answerAll(); }
    else world.host.answer(path, world.host.refreshBatches.at(-1));
    await settle();
  };
  world.host.define("slow", (ctx) => ctx.get("a") ?? null);
  both.add(0, "slow");
  both.add(1, "get", { key: "a" });
  fast.add(0, "get", { key: "a" });
  await run();
  world.host.write({ a: 1 });
  await run("get");
  for (let a = 2; a < 6; a++) {
    world.host.write({ a });
    await run("get");
    assert.equal(fast.value(0), a);
    assert.equal(both.value(1), null, "held back by the slow query");
  }
  // The slow run read ts 1, so both results of ts 1 arrive together.
  world.host.answer("slow");
  await settle();
  assert.deepEqual([both.value(0), both.value(1), both.version.ts], [1, 1, 1]);
  await run();
  assert.deepEqual([both.value(0), both.value(1), both.version.ts], [5, 5, 5]);
});

Deno.test("commits are recorded only while queries run", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.pin();
  await settle();
  for (let a = 1; a < 4; a++) world.host.write({ b: a });
  world.host.answerAll();
  await settle();
  assert.deepEqual([world.host.refreshBatches.length, socket.value(0)], [0, null]);
  world.hub.validate();
});

Deno.test("SH6 two continuously running queries reach one ts under constant commits", async () => {
  const world = new World({ auto: false, readers: 4 });
  world.host.define("one", (ctx) => ctx.get("a") ?? null);
  world.host.define("two", (ctx) => ctx.get("a") ?? null);
  const socket = world.connected();
  socket.add(0, "one");
  socket.add(1, "two");
  let a = 0;
  // Out of step from the start: one is running whenever the other could start.
  for (let round = 0; round < 40; round++) {
    world.host.write({ a: ++a });
    await settle();
    world.host.pin();
    await settle();
    const path = round % 2 === 0 ? "one" : "two";
    if (world.host.pathsInFlight.flat().includes(path)) world.host.answer(path);
    await settle();
    assert.equal(
      socket.results.size === 2 ? socket.value(0) : 0,
      socket.results.size === 2 ? socket.value(1) : 0,
    );
  }
  assert.ok(socket.version.ts > 30, `the socket has come to ts ${socket.version.ts} of ${a}`);
});

Deno.test("HC6 a one-shot query is answered from a valid result, and never from an invalid one", async () => {
  const world = new World();
  const ask = () =>
    world.hub.query({ udfPath: "get", args: { key: "a" }, identity: anonymous, origin: "client" });
  assert.deepEqual(await ask(), { ok: true, value: "null", logLines: [] });
  await ask();
  assert.equal(world.host.runs.length, 1);
  world.host.write({ b: 1 });
  await ask();
  assert.equal(world.host.runs.length, 1);
  world.host.write({ a: 1 });
  assert.deepEqual(await ask(), { ok: true, value: "1", logLines: [] });
  assert.equal(world.host.runs.length, 2);
});

Deno.test("HC6 calls that arrive during a run wait for it if it is new enough, otherwise for the next", async () => {
  const world = new World({ auto: false });
  const answers: unknown[] = [];
  const ask = () =>
    world.hub.query({ udfPath: "get", args: { key: "a" }, identity: anonymous, origin: "client" })
      .then((outcome) => answers.push(outcome.ok && outcome.value));
  ask();
  await settle();
  world.host.pin();
  await settle();
  ask();
  world.host.write({ a: 1 });
  ask();
  world.host.answerAll();
  await settle();
  assert.deepEqual(answers, ["null", "null"]);
  world.host.pin();
  world.host.answerAll();
  await settle();
  assert.deepEqual(answers, ["null", "null", "1"]);
});

Deno.test("HC7 a result that read the clock never answers another call", async () => {
  const world = new World();
  const ask = () => world.hub.query({ udfPath: "now", args: {}, identity: anonymous, origin: "client" });
  const first = await ask();
  assert.notDeepEqual(await ask(), first);
  const socket = world.connected();
  socket.add(0, "now");
  await settle();
  const shown = socket.value(0);
  assert.notDeepEqual(await ask(), { ok: true, value: String(shown), logLines: [] });
  await settle();
  assert.equal(socket.value(0), shown, "another client's call changes nothing for a subscriber");
  const [one, two] = await Promise.all([ask(), ask()]);
  assert.equal(one, two, "calls that came together may share a run");
});

Deno.test("HC7 a call that arrives during a run that reads the clock gets a separate run", async () => {
  const world = new World({ auto: false });
  const ask = () => world.hub.query({ udfPath: "now", args: {}, identity: anonymous, origin: "client" });
  const first = ask();
  await settle();
  world.host.pin();
  await settle();
  const second = ask();
  world.host.answerAll();
  await settle();
  world.host.pin();
  world.host.answerAll();
  assert.notDeepEqual(await first, await second);
});

Deno.test("HC8 cached results are bounded, and a repeated call evicts the least recently used", async () => {
  const world = new World();
  const ask = (key: string) =>
    world.hub.query({ udfPath: "get", args: { key }, identity: anonymous, origin: "client" });
  const runsOf = async (key: string) => {
    world.host.runs.length = 0;
    await ask(key);
    return world.host.runs.length;
  };
  await ask("first");
  for (let i = 0; i < sharedQueryLimits.cachedQueriesMax; i++) await ask(`k${i}`);
  assert.equal(world.hub.load.sharedQueries, sharedQueryLimits.cachedQueriesMax);
  world.hub.validate();
  assert.equal(await runsOf("k5"), 0);
  const last = `k${sharedQueryLimits.cachedQueriesMax - 1}`;
  assert.deepEqual([await runsOf(last), await runsOf(last)], [1, 0], "the cache was full at its first call");
  assert.equal(world.hub.load.sharedQueries, sharedQueryLimits.cachedQueriesMax);
  assert.equal(await runsOf("first"), 1);
  world.hub.validate();
});

Deno.test("HC8 with less memory, fewer characters of results are cached", async () => {
  const cachedWith = async (memoryBytes: number) => {
    const world = new World({ memoryBytes });
    for (let i = 0; i < 100; i++) {
      await world.hub.query({
        udfPath: "get",
        args: { key: `k${i}` },
        identity: anonymous,
        origin: "client",
      });
    }
    world.hub.validate();
    return world.hub.load.sharedQueries;
  };
  const few = await cachedWith(4_000 / sharedQueryLimits.cachedCharsShare);
  assert.ok(few >= 10 && few <= 40, `${few}`);
  assert.equal(await cachedWith(1), 0);
});

Deno.test("HC8 system queries do not evict the app's cached results", async () => {
  const world = new World();
  const ask = (key: string) =>
    world.hub.query({ udfPath: "_system/x:find", args: { key }, identity: anonymous, origin: "system" });
  await Promise.all([ask("a"), ask("a")]);
  assert.equal(world.host.runs.length, 1, "asked at once, it is run once");
  assert.equal(world.hub.load.sharedQueries, 0);
});

Deno.test("HC8 the queue of one-shot queries is bounded", async () => {
  const world = new World({ auto: false });
  const ask = (i: number) =>
    world.hub.query({
      udfPath: "get",
      args: { key: `k${i % 50}` },
      identity: user("u", "s"),
      origin: "client",
    });
  const waiting = Array.from({ length: sharedQueryLimits.queuedQueriesMax }, (_, i) => ask(i));
  const refused = await ask(0);
  assert.ok(!refused.ok && refused.error.message.includes("overloaded"));
  await settle();
  while (world.host.refreshBatches.length > 0) {
    world.host.pin();
    world.host.answerAll();
    await settle();
  }
  assert.ok((await Promise.all(waiting)).every((outcome) => outcome.ok));
});

Deno.test("SH9 new code runs every query again, and answers of the old code are discarded", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  const run = async () => {
    await settle();
    world.host.pin();
    world.host.answerAll();
    await settle();
  };
  socket.add(0, "sum");
  await run();
  assert.equal(socket.value(0), 0);
  world.host.write({ a: 1 });
  await settle();
  world.host.pin();
  await settle();
  world.host.reload();
  world.host.answerAll();
  await settle();
  assert.equal(socket.value(0), 0, "the old code's answer is not shown");
  world.host.define("sum", () => "new code");
  await run();
  assert.equal(socket.value(0), "new code");
});

Deno.test("SH3 a query whose run was stopped runs again after the next commit", async () => {
  const world = new World();
  const socket = world.connected();
  world.host.unknownReads.add("get");
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.runs.length = 0;
  world.host.unknownReads.clear();
  world.host.write({ other: 1 });
  await settle();
  assert.equal(world.host.runs.length, 1);
  world.host.write({ other: 2 });
  await settle();
  assert.equal(world.host.runs.length, 1);
});

Deno.test("SH3 a snapshot newer than the newest commit known to main is usable", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  socket.add(1, "get", { key: "b" });
  await settle();
  world.host.pin();
  world.host.answerAll();
  await settle();
  world.host.write({ a: 1 });
  await settle();
  // Commits 2 and 3 are in the snapshot before main receives them.
  world.host.muted = true;
  world.host.write({ b: 1 });
  world.host.write({ a: 2 });
  world.host.pin();
  world.host.answerAll();
  await settle();
  assert.deepEqual([socket.value(0), socket.value(1), socket.version.ts], [null, null, 0]);
  world.host.muted = false;
  world.host.notifyMuted();
  await settle();
  world.host.pin();
  world.host.answerAll();
  await settle();
  assert.deepEqual([socket.value(0), socket.value(1), socket.version.ts], [2, 1, 3]);
});

Deno.test("[PG5] commits of another server that no query reads are recorded without decoding", async () => {
  const world = new World({ auto: false });
  const { host } = world;
  host.follows = true;
  host.write({ a: 1 });
  host.write({ a: 2 });
  assert.equal(host.groupsMade, 0);
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  assert.equal(host.refreshBatches.length, 1);
  host.pin();
  host.write({ a: 3 });
  assert.equal(host.groupsMade, 1, "a query that runs has read before it");
  host.auto = true;
  host.answerAll();
  await settle();
  assert.equal(socket.value(0), 3);
  host.write({ a: 4 });
  await settle();
  assert.equal(host.groupsMade, 2);
  assert.equal(socket.value(0), 4);
  socket.remove(0);
  socket.add(1, "get", { key: "a" });
  host.write({ a: 5 });
  await settle();
  assert.equal(socket.value(1), 5);
});

Deno.test("[PG5] a query starts at commits of another server that were not published", async () => {
  const world = new World({ queries: { nothing: () => "read" } });
  world.host.follows = true;
  const socket = world.connected();
  socket.add(0, "nothing");
  await settle();
  world.host.write({ a: 1 });
  socket.add(1, "get", { key: "a" });
  await settle();
  assert.equal(world.host.groupsMade, 0);
  assert.deepEqual([socket.value(0), socket.value(1)], ["read", 1], "together, at the ts of now");
});

Deno.test("[PG5] an answer that arrives before its commits are published is sent with them", async () => {
  const world = new World({ queries: { nothing: () => "read", neither: () => "read either" } });
  const { host } = world;
  host.follows = true;
  const socket = world.connected();
  socket.add(0, "nothing");
  await settle();
  host.muted = true;
  host.write({ b: 1 });
  socket.add(1, "neither");
  await settle();
  assert.throws(() => socket.value(1), /no value/, "the two have no ts in common yet");
  host.muted = false;
  host.notifyMuted();
  await settle();
  assert.deepEqual([socket.value(0), socket.value(1)], ["read", "read either"]);
});

Deno.test("[PG5] commits that a query may have read are published", async () => {
  const world = new World();
  world.host.follows = true;
  world.host.unknownReads.add("get");
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.write({ b: 1 });
  await settle();
  assert.equal(world.host.groupsMade, 1);
});

Deno.test("with --dev, a live query that reads the clock is reported once, and one-time calls are not", async () => {
  const warnings: string[] = [];
  const log: Log = (level, message) => void (level === "warn" && warnings.push(message));
  for (const dev of [false, true]) {
    const world = new World({ dev, log });
    const socket = world.connected();
    await world.hub.query({ udfPath: "now", args: { once: 1 }, identity: anonymous, origin: "client" });
    assert.deepEqual(warnings, []);
    socket.add(0, "now");
    socket.add(1, "now", { again: 1 });
    socket.add(2, "get", { key: "a" });
    await settle();
  }
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /^The live query now reads the clock/);
});

Deno.test("slow queries request a reader until they run, also if they were not known to be slow at first", async () => {
  const world = new World({ auto: false, readers: 1 });
  const { host, hub } = world;
  let hasSlowQueries = false;
  let requests = 0;
  Object.defineProperty(host, "readers", {
    configurable: true,
    get: () => ({
      free: host.hasFreeReader,
      onFree: () => {},
      hasSlowQueries,
      isSlow: ({ udfPath }: { readonly udfPath: string }) => hasSlowQueries && udfPath === "list",
      slowFree: () => {
        requests++;
        return false;
      },
    }),
  });
  const answers: Promise<unknown>[] = [];
  const ask = async (udfPath: string, args: Record<string, unknown> = {}) => {
    answers.push(hub.query({ udfPath, args, identity: anonymous, origin: "client" }));
    await settle();
  };
  await ask("get", { key: "a" });
  assert.equal(host.refreshBatches.length, 1);
  host.pin();
  await settle();
  await ask("list");
  assert.equal(requests, 0);
  hasSlowQueries = true;
  for (const [n, udfPath] of ["sum", "me", "session"].entries()) {
    await ask(udfPath);
    assert.ok(requests > n, `${requests} after ${udfPath}`);
  }
  hub.validate();
  Reflect.deleteProperty(host, "readers");
  host.auto = true;
  host.answerAll();
  await Promise.all(answers);
  hub.validate();
});
