/** Result diffs over a socket: when they are sent, and relative to which result. */
import assert from "node:assert/strict";
import { socketLimits } from "../../mod/limits.ts";
import { World } from "./support/world.ts";
import { settle, type TestSocket } from "./support/test_socket.ts";

const rows = (count: number) =>
  Array.from(
    { length: count },
    (_, i) => ({ _id: `m${i}`, body: `message number ${i} says hello`, likes: 0 }),
  );

function lastItem(socket: TestSocket): Record<string, unknown> {
  const item = socket.all("Transition").at(-1)?.modifications[0];
  assert.ok(item !== undefined);
  return item;
}

Deno.test("DF1 only sockets with the feature receive diffs, and the first result is always a value", async () => {
  const world = new World();
  world.host.write({ a: rows(20) });
  const [plain, diffs] = [world.connected(), world.connected({ features: ["diffs", "unknown"] })];
  for (const socket of [plain, diffs]) socket.add(0, "get", { key: "a" });
  await settle();
  assert.ok("value" in lastItem(plain) && "value" in lastItem(diffs));
  const changed = rows(20).map((row, i) => i === 3 ? { ...row, likes: 1 } : row);
  world.host.write({ a: changed });
  await settle();
  assert.ok("value" in lastItem(plain));
  assert.deepEqual(lastItem(diffs).diff, { $a: [3, { $p: { $o: { s: { likes: 1 } } } }] });
  assert.deepEqual(diffs.value(0), changed);
});

Deno.test("DF1 without Connect no diffs are sent", async () => {
  const world = new World();
  world.host.write({ a: rows(20) });
  const socket = world.socket();
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.write({ a: rows(21) });
  await settle();
  assert.ok("value" in lastItem(socket));
});

Deno.test("DF5 a one-row change of 1,000 rows costs less than 2 % of the value", async () => {
  const world = new World();
  world.host.write({ a: rows(1000) });
  const socket = world.connected({ features: ["diffs"] });
  socket.add(0, "get", { key: "a" });
  await settle();
  const whole = socket.chars;
  world.host.write({ a: rows(1000).map((row, i) => i === 500 ? { ...row, body: "edited" } : row) });
  await settle();
  const share = (socket.chars - whole) / whole;
  assert.ok(share < 0.02, `${(share * 100).toFixed(2)} %`);
});

Deno.test("DF8 the value is sent when a diff is not clearly smaller", async () => {
  const world = new World();
  world.host.write({ a: [1, 2, 3] });
  const socket = world.connected({ features: ["diffs"] });
  socket.add(0, "get", { key: "a" });
  await settle();
  for (const a of [[4, 5, 6], { a: 1 }, "text", null, 7, [1], [1, 2]]) {
    world.host.write({ a });
    await settle();
    assert.ok("value" in lastItem(socket), JSON.stringify(a));
    assert.deepEqual(socket.value(0), a);
  }
});

Deno.test("DF2 a diff is relative to what this socket was last sent, also when it skipped results", async () => {
  const world = new World();
  world.host.write({ a: rows(50), b: "x".repeat(socketLimits.bufferedBytesMax) });
  const [slow, fast] = [world.connected({ features: ["diffs"] }), world.connected({ features: ["diffs"] })];
  for (const socket of [slow, fast]) socket.add(0, "get", { key: "a" });
  await settle();
  slow.stalled = true;
  slow.add(1, "get", { key: "b" });
  await settle();
  const list = rows(50);
  for (let i = 0; i < 10; i++) {
    list[i] = { _id: `m${i}`, body: "edited", likes: i };
    world.host.write({ a: list.slice(i % 3) });
    await settle();
    assert.deepEqual(fast.value(0), list.slice(i % 3));
  }
  slow.drain();
  world.clock.move(socketLimits.drainPollMs);
  await settle();
  assert.ok("diff" in lastItem(slow));
  assert.deepEqual(slow.value(0), fast.value(0));
});

Deno.test("DF9 a new socket starts with complete values", async () => {
  const world = new World();
  world.host.write({ a: rows(20) });
  const first = world.connected({ features: ["diffs"] });
  first.add(0, "get", { key: "a" });
  await settle();
  world.host.write({ a: rows(21) });
  await settle();
  const second = world.connected({ features: ["diffs"] });
  second.add(0, "get", { key: "a" });
  await settle();
  assert.deepEqual(lastItem(second).value, rows(21));
});
