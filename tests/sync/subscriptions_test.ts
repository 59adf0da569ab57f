/** Subscriptions: results of a query set, and their timing. */
import assert from "node:assert/strict";
import { World } from "./support/world.ts";
import { settle } from "./support/test_socket.ts";

Deno.test("SQ1 the first result of an Add arrives in the Transition of its ModifyQuerySet", async () => {
  const world = new World();
  world.host.write({ a: 1 });
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  assert.deepEqual(socket.take(), [{
    type: "Transition",
    startVersion: { querySet: 0, identity: 0, ts: 0 },
    endVersion: { querySet: 1, identity: 0, ts: 1 },
    modifications: [{ type: "QueryUpdated", queryId: 0, value: 1, logLines: [] }],
  }]);
});

Deno.test("SG3 several ModifyQuerySets sent together get a Transition each, in order", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  socket.add(1, "get", { key: "b" });
  socket.modify();
  socket.add(2, "sum");
  await settle();
  assert.deepEqual(
    socket.all("Transition").map(({ endVersion, modifications }) => [
      endVersion.querySet,
      modifications.map(({ queryId }) => queryId),
    ]),
    [[1, [0]], [2, [1]], [3, []], [4, [2]]],
  );
});

Deno.test("SG3 later ModifyQuerySets run concurrently with the first, and are answered after it", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.pin();
  await settle();
  socket.add(1, "get", { key: "b" });
  await settle();
  world.host.pin();
  await settle();
  assert.deepEqual(world.host.pathsInFlight, [["get"], ["get"]]);
  world.host.answerAll(world.host.refreshBatches[1]);
  await settle();
  assert.equal(socket.frames.length, 0);
  world.host.answerAll();
  await settle();
  assert.deepEqual(socket.all("Transition").map(({ endVersion }) => endVersion.querySet), [1, 2]);
});

Deno.test("SQ2 a changed result is sent, an unchanged one is not", async () => {
  const world = new World();
  world.host.write({ a: 1, b: 2 });
  const socket = world.connected();
  socket.add(0, "sum");
  await settle();
  socket.take();
  world.host.write({ a: 2, b: 1 });
  await settle();
  assert.deepEqual(socket.take(), []);
  assert.equal(world.host.runs.length, 2);
  world.host.write({ a: 5 });
  await settle();
  assert.equal(socket.value(0), 6);
  assert.equal(socket.version.ts, 3);
});

Deno.test("SQ2 a result with another key order is unchanged, one with the same characters is not", async () => {
  const world = new World();
  const socket = world.connected();
  world.host.write({ a: { x: 1, y: [{ p: 1, q: 2 }] } });
  socket.add(0, "get", { key: "a" });
  await settle();
  socket.take();
  world.host.write({ a: { y: [{ q: 2, p: 1 }], x: 1 } });
  await settle();
  assert.deepEqual(socket.take(), []);
  world.host.write({ a: { y: [{ q: 1, p: 2 }], x: 1 } });
  await settle();
  assert.equal(socket.take().length, 1);
  assert.deepEqual(socket.results.get(0), { value: { y: [{ q: 1, p: 2 }], x: 1 } });
});

Deno.test("SQ2 a commit that does not affect a socket's results sends nothing and runs nothing", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  socket.take();
  world.host.write({ unrelated: 1 });
  await settle();
  assert.deepEqual(socket.take(), []);
  assert.equal(world.host.runs.length, 1);
});

Deno.test("SQ3 SG5 a failing query stays subscribed, SQ4 and recovers with a full value", async () => {
  const world = new World();
  world.host.write({ a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] });
  const socket = world.connected({ features: ["diffs"] });
  socket.add(0, "failing");
  await settle();
  world.host.write({ fail: "user" });
  await settle();
  assert.equal(socket.error(0), "No luck today");
  socket.take();
  world.host.write({ fail: undefined });
  await settle();
  const [recovered] = socket.take();
  assert.ok(recovered?.type === "Transition");
  assert.deepEqual(recovered.modifications, [{
    type: "QueryUpdated",
    queryId: 0,
    value: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    logLines: [],
  }]);
});

Deno.test("SQ3 the same error again is not sent again", async () => {
  const world = new World();
  world.host.write({ fail: "user" });
  const socket = world.connected();
  socket.add(0, "failing");
  await settle();
  socket.take();
  world.host.write({ fail: "user" });
  await settle();
  assert.deepEqual(socket.take(), []);
});

Deno.test("SQ5 SG11 a removed query is confirmed once and then silent", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  socket.remove(0);
  await settle();
  assert.deepEqual(socket.all("Transition")[1]?.modifications, [{ type: "QueryRemoved", queryId: 0 }]);
  socket.take();
  world.host.write({ a: 1 });
  await settle();
  assert.deepEqual(socket.take(), []);
  assert.equal(world.host.runs.length, 1);
});

Deno.test("SQ5 a query added and removed by two ModifyQuerySets sent together has a result, then is removed", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  socket.remove(0);
  await settle();
  assert.deepEqual(
    socket.all("Transition").map(({ modifications }) => modifications.map(({ type }) => type)),
    [["QueryUpdated"], ["QueryRemoved"]],
  );
});

Deno.test("SQ6 Add and Remove of one id in one ModifyQuerySet cause neither a result nor QueryRemoved", async () => {
  const world = new World();
  const socket = world.connected();
  socket.modify(
    { type: "Add", queryId: 0, udfPath: "get", args: { key: "a" } },
    { type: "Add", queryId: 1, udfPath: "get", args: { key: "b" } },
    { type: "Remove", queryId: 0 },
  );
  await settle();
  assert.deepEqual(
    socket.all("Transition").map(({ modifications }) => modifications.map((item) => item.queryId)),
    [[
      1,
    ]],
  );
  assert.deepEqual(world.host.runs, ['get {"key":"b"}']);
});

Deno.test("SQ6 Remove and Add of a live id in one ModifyQuerySet cause the old one's removal and the new one's result", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  socket.modify({ type: "Remove", queryId: 0 }, { type: "Add", queryId: 0, udfPath: "sum", args: {} });
  await settle();
  assert.deepEqual(socket.all("Transition")[1]?.modifications.map(({ type }) => type), [
    "QueryRemoved",
    "QueryUpdated",
  ]);
});

Deno.test("WS7 Remove of an unknown id is ignored and answered", async () => {
  const world = new World();
  const socket = world.connected();
  socket.remove(7);
  await settle();
  assert.deepEqual(socket.all("Transition").map(({ modifications }) => modifications), [[]]);
});

Deno.test("WS6 unknown functions and invalid arguments are results, with the real error text", async () => {
  const world = new World();
  world.host.write({ fail: "args" });
  const socket = world.connected();
  socket.modify(
    { type: "Add", queryId: 0, udfPath: "no:such", args: {} },
    { type: "Add", queryId: 1, udfPath: "failing", args: {} },
  );
  await settle();
  assert.equal(socket.error(0), "Unknown function no:such");
  assert.equal(socket.error(1), "args.x: Required");
  world.host.write({ fail: undefined });
  await settle();
  assert.equal(socket.value(1), null);
});

Deno.test("WS6 arguments that no function accepts cause results too", async () => {
  const world = new World();
  const socket = world.connected();
  socket.raw(
    '{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[{"type":"Add","queryId":0,"udfPath":"get","args":{"key":[1e400]}}]}',
  );
  const deep = "[".repeat(200) + "]".repeat(200);
  socket.raw(
    `{"type":"ModifyQuerySet","baseVersion":1,"newVersion":2,"modifications":[{"type":"Add","queryId":1,"udfPath":"get","args":{"key":${deep}}}]}`,
  );
  await settle();
  assert.equal(socket.error(0), "args.key[0]: number out of range");
  assert.equal(socket.error(1), "args: nested deeper than 64 levels");
  assert.deepEqual(world.host.runs, []);
  socket.querySet = 2;
  socket.remove(0);
  await settle();
  assert.equal(socket.results.size, 1);
});

Deno.test("SG6 user errors contain code and data, bugs are Server Error, SG10 log lines stay on the server", async () => {
  for (const dev of [false, true]) {
    const world = new World({ dev });
    const socket = world.connected();
    socket.modify(
      { type: "Add", queryId: 0, udfPath: "failing", args: {} },
      { type: "Add", queryId: 1, udfPath: "logging", args: {} },
    );
    world.host.write({ fail: "user" });
    await settle();
    world.host.write({ fail: "bug" });
    await settle();
    const items = socket.all("Transition").flatMap(({ modifications }) => modifications);
    assert.deepEqual(items.filter(({ type }) => type === "QueryFailed"), [
      {
        type: "QueryFailed",
        queryId: 0,
        errorMessage: "No luck today",
        errorData: { code: "no_luck", data: { tries: 3 } },
        logLines: [],
      },
      {
        type: "QueryFailed",
        queryId: 0,
        errorMessage: dev ? "secret detail" : "Server Error",
        errorData: null,
        logLines: [],
      },
    ]);
    const logged = items.find(({ queryId }) => queryId === 1);
    assert.deepEqual(logged && "logLines" in logged && logged.logLines, dev ? ["[INFO] looked"] : []);
  }
});

Deno.test("SG10 an unchanged rerun sends no new log lines", async () => {
  const world = new World({ dev: true });
  world.host.write({ a: 1 });
  const socket = world.connected();
  socket.add(0, "logging");
  await settle();
  socket.take();
  world.host.write({ a: 1 });
  await settle();
  assert.deepEqual(socket.take(), []);
  assert.equal(world.host.runs.length, 2);
});

Deno.test("SG1 results of one Transition belong to one commit", async () => {
  const world = new World();
  world.host.write({ a: 1, b: 9 });
  const socket = world.connected();
  socket.modify(
    { type: "Add", queryId: 0, udfPath: "get", args: { key: "a" } },
    { type: "Add", queryId: 1, udfPath: "get", args: { key: "b" } },
  );
  await settle();
  for (let a = 2; a < 10; a++) {
    world.host.write({ a, b: 10 - a });
    await settle();
    assert.equal(Number(socket.value(0)) + Number(socket.value(1)), 10);
  }
  assert.equal(socket.all("Transition").length, 9);
});

Deno.test("SG1 an Add to live queries waits until all results are known at one ts", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  const step = async () => {
    await settle();
    world.host.pin();
    await settle();
  };
  socket.add(0, "get", { key: "a" });
  await step();
  world.host.answerAll();
  await settle();
  // The new query's run sees ts 0; the live one changes at ts 1 and is run at ts 1.
  socket.add(1, "get", { key: "b" });
  await step();
  world.host.write({ a: 1, b: 1 });
  world.host.answerAll();
  await step();
  assert.deepEqual(socket.all("Transition").map(({ endVersion }) => [endVersion.querySet, endVersion.ts]), [
    [1, 0],
    [2, 0],
  ]);
  assert.equal(socket.value(1), null);
  world.host.answerAll();
  await settle();
  assert.deepEqual([socket.value(0), socket.value(1)], [1, 1]);
  assert.equal(socket.version.ts, 1);
});

Deno.test("SG2 ts never decreases, PC3 and only the changed versions differ", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  for (let i = 0; i < 5; i++) {
    world.host.write({ a: i, other: i });
    world.host.write({ other: i });
    await settle();
  }
  assert.deepEqual(
    socket.all("Transition").map(({ endVersion }) => endVersion.ts),
    [0, 2, 4, 6, 8, 10],
  );
});
