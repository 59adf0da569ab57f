/** A socket's life: fresh state, messages in any order that is allowed, reconnects. */
import assert from "node:assert/strict";
import { World } from "./support/world.ts";
import { settle } from "./support/test_socket.ts";

Deno.test("SV1 a new socket starts at 0/0, regardless of its session's earlier socket", async () => {
  const world = new World();
  world.host.write({ a: 1 });
  const first = world.connected();
  first.add(0, "get", { key: "a" });
  first.authenticate(0, "u1.s1");
  await settle();
  first.drop();
  const second = world.connected();
  second.modify();
  await settle();
  assert.deepEqual(
    second.all("Transition").map(({ startVersion, endVersion }) => [startVersion, endVersion]),
    [[
      { querySet: 0, identity: 0, ts: 0 },
      { querySet: 1, identity: 0, ts: 1 },
    ]],
  );
});

Deno.test("SV2 querySet moves with the Transition that covers the ModifyQuerySet, not before", async () => {
  const world = new World({ auto: false });
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.pin();
  socket.mutate(1, "set", { key: "b", value: 1 });
  world.host.commit();
  await settle();
  assert.deepEqual(socket.version, { querySet: 0, identity: 0, ts: 1 });
  world.host.answerAll();
  await settle();
  assert.equal(socket.version.querySet, 1);
});

Deno.test("WS16 messages before Connect are served", async () => {
  const world = new World({ actions: { echo: (args) => args } });
  const socket = world.socket();
  socket.add(0, "get", { key: "a" });
  socket.mutate(1, "add", { key: "a" });
  socket.act(2, "echo", { x: 1 });
  socket.authenticate(0, null);
  await settle();
  assert.equal(socket.value(0), 1);
  assert.deepEqual(socket.all("ActionResponse").map((response) => response.success && response.result), [{
    x: 1,
  }]);
  assert.deepEqual(socket.version, { querySet: 1, identity: 1, ts: 1 });
});

Deno.test("WS11 an unsolicited Pong is ignored", async () => {
  const socket = new World().socket();
  for (let i = 0; i < 5; i++) socket.report({ type: "Pong" });
  await settle();
  assert.deepEqual(socket.frames, []);
});

Deno.test("PC4 function paths are unchanged", async () => {
  const world = new World({ queries: { "a/b/c:list": () => "nested", bare: () => "bare" } });
  const socket = world.connected();
  socket.add(0, "a/b/c:list");
  socket.add(1, "bare");
  await settle();
  assert.deepEqual([socket.value(0), socket.value(1)], ["nested", "bare"]);
});

Deno.test("PC4 a path longer than any real one is an unknown function", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "x".repeat(100_000));
  await settle();
  assert.match(socket.error(0), /^Unknown function/);
  assert.equal(world.host.runs.length, 0);
});

Deno.test("PC6 any query ids are fine", async () => {
  const world = new World();
  const socket = world.connected();
  const ids = [0, -1, 1_000_000, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
  socket.modify(...ids.map((queryId) => ({ type: "Add" as const, queryId, udfPath: "sum", args: {} })));
  await settle();
  assert.deepEqual([...socket.results.keys()], ids);
});

Deno.test("QI2 a reconnect continues where the last socket ended", async () => {
  const world = new World();
  const first = world.connected({ features: ["diffs"] });
  first.authenticate(0, "u1.s1");
  first.add(3, "me");
  first.add(8, "get", { key: "a" });
  first.mutate(5, "add", { key: "a" });
  await settle();
  first.drop();
  world.host.write({ b: 1 });

  const second = world.connected({ features: ["diffs"] });
  second.authenticate(0, "u1.s1");
  second.modify(
    { type: "Add", queryId: 3, udfPath: "me", args: {} },
    { type: "Add", queryId: 8, udfPath: "get", args: { key: "a" } },
  );
  second.mutate(5, "add", { key: "a" });
  second.mutate(6, "add", { key: "a" });
  await settle();
  assert.deepEqual(
    second.all("MutationResponse").map((response) => response.success && [response.result, response.ts]),
    [[1, 1], [2, 3]],
  );
  assert.equal(second.value(8), 2);
  assert.deepEqual(second.value(3), { principal: "user:u1", value: 2 });
  assert.deepEqual(second.version, { querySet: 1, identity: 1, ts: 3 });
});
