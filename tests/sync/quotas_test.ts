/** Quotas shared by all sockets, and which sockets are ended when they are exceeded. */
import assert from "node:assert/strict";
import { socketLimits } from "../../mod/limits.ts";
import { FrameRateLimiter, InboundQuota } from "../../mod/sync/sockets/inbound_frames.ts";
import { OutboundQuota } from "../../mod/sync/sockets/outbound_quota.ts";
import { until } from "../support/waiting.ts";
import { settle, type TestSocket } from "./support/test_socket.ts";
import { World } from "./support/world.ts";

const MiB = 1024 * 1024;
/** With this memory, all sockets together have the minimum quota. */
const unsentMax = socketLimits.outboundQuotaBytesMin;
const heldMax = socketLimits.inboundQuotaCharsMin;

function worldOfLarge(chars: number): World {
  const world = new World({ memoryBytes: 1, actions: { forever: () => new Promise(() => {}) } });
  world.host.define("large", (_ctx, { char }) => String(char).repeat(chars));
  return world;
}

/** A socket that requests large results and does not read them. */
async function deaf(world: World, char: string): Promise<TestSocket> {
  const socket = world.connected();
  socket.stalled = true;
  socket.add(1, "large", { char });
  await settle();
  return socket;
}

const showsLarge = (socket: TestSocket) => socket.all("Transition").length > 0;

Deno.test("BU1 a Transition over the quota waits, a stalled socket is aborted, and the others continue", async () => {
  const world = worldOfLarge(unsentMax * 0.7);
  const sockets = [await deaf(world, "a"), await deaf(world, "b")];
  const [first] = sockets;
  assert.deepEqual(sockets.map(showsLarge), [true, false]);
  // Small frames are accepted all the same.
  const small = world.connected();
  small.add(1, "get", { key: "a" });
  await settle();
  assert.equal(small.all("Transition").length, 1);
  world.clock.move(socketLimits.stallCheckMs + 2 * socketLimits.outboundPollMs);
  await settle();
  assert.equal(first?.wasCut, true);
  assert.deepEqual(sockets.map(showsLarge), [true, true]);
  assert.equal(small.wasCut, false);
});

Deno.test("BU1 a socket that reads its data is not aborted and frees quota for others", async () => {
  const world = worldOfLarge(unsentMax * 0.7);
  const [first, second] = [await deaf(world, "a"), await deaf(world, "b")];
  for (let step = 0; step < 10; step++) {
    first.bufferedAmount = Math.max(0, first.bufferedAmount - unsentMax / 12);
    world.clock.move(socketLimits.stallCheckMs);
    await settle();
  }
  assert.equal(first.wasCut, false);
  assert.equal(showsLarge(second), true);
});

Deno.test("BU1 the sockets with the most buffered data are aborted first", () => {
  let now = 0;
  const cuts: string[] = [];
  const budget = new OutboundQuota({ bytesMax: 10 * MiB, now: () => now, log: () => {} });
  const open = (name: string, bytes: number) => {
    const account = budget.open({
      send: () => {},
      close: () => {},
      setReceiveWindow: () => {},
      cut: () => cuts.push(name),
      bufferedAmount: bytes,
      acknowledgedBytes: 0,
    });
    budget.queued(account, bytes);
    return account;
  };
  open("small", MiB);
  open("large", 6 * MiB);
  const middle = open("middle", 3 * MiB);
  for (; now <= 2 * socketLimits.stallCheckMs; now += socketLimits.outboundPollMs) budget.tick();
  assert.deepEqual(cuts, ["large"]);
  assert.equal(budget.bytes, 4 * MiB);
  budget.close(middle);
  assert.equal(budget.bytes, MiB);
});

Deno.test("BU1 large Transitions are sent one at a time, with pauses for other work", () => {
  let now = 0;
  const budget = new OutboundQuota({ bytesMax: 100 * MiB, now: () => now, log: () => {} });
  const account = budget.open({
    send: () => {},
    close: () => {},
    setReceiveWindow: () => {},
    cut: () => {},
    bufferedAmount: 0,
    acknowledgedBytes: 0,
  });
  const large = 4 * MiB;
  assert.ok(budget.canSend(large));
  budget.queued(account, large);
  const pauseMs = 4 * socketLimits.largePauseMsPerMiB;
  assert.deepEqual([budget.canSend(large), budget.canSend(socketLimits.largeChars)], [false, true]);
  now += pauseMs;
  assert.ok(budget.canSend(large));
  budget.queued(account, large);
  assert.ok(!budget.canSend(large));
  now -= 60_000;
  assert.ok(budget.canSend(large), "a clock that was set back holds up nobody");
});

Deno.test("BU2 an ended socket is aborted if it does not close, immediately if it does not read", async () => {
  const world = worldOfLarge(MiB);
  const [reading, slow] = [world.connected(), await deaf(world, "a")];
  for (const socket of [reading, slow]) {
    // The peer does not answer the close frame.
    socket.close = (code) => {
      socket.closedWith ??= code;
    };
    socket.raw("{");
  }
  world.clock.move(socketLimits.closeHostileMs + socketLimits.tickMs);
  assert.deepEqual([reading.wasCut, slow.wasCut], [false, true]);
  world.clock.move(socketLimits.closeMs);
  assert.equal(reading.wasCut, true);
  assert.equal(world.clock.timers, 0);
});

Deno.test("BU3 over the inbound quota the largest socket is closed, and its calls remain counted", async () => {
  const world = worldOfLarge(1);
  const [large, small] = [world.connected(), world.connected()];
  small.act(1, "forever", { text: "x".repeat(MiB) });
  const text = "x".repeat(4 * MiB);
  for (let n = 1; large.closedWith === null; n++) {
    assert.ok(n * text.length < heldMax + text.length, "nobody was ended");
    large.act(n, "forever", { text });
  }
  assert.match(large.all("FatalError")[0]?.error ?? "", /inbound buffers are full/);
  assert.equal(small.closedWith, null);
  // Calls of a closed socket keep running: a new socket gets a small quota only.
  const newcomer = world.connected();
  newcomer.act(1, "forever", { text });
  assert.match(newcomer.all("FatalError")[0]?.error ?? "", /inbound buffers are full/);
  small.mutate(2, "set", { key: "a", value: 1 });
  await settle();
  assert.equal(small.all("MutationResponse").length, 1);
});

Deno.test("BU3 arguments of live queries count until the queries are removed", () => {
  const world = worldOfLarge(1);
  const socket = world.connected();
  const text = "x".repeat(MiB);
  // Far more than the quota in total, but never at once.
  for (let n = 0; n < 3 * heldMax / MiB; n++) {
    socket.add(n, "get", { key: text });
    socket.remove(n);
  }
  assert.equal(socket.closedWith, null);
  for (let n = 1; socket.closedWith === null && n < 2 * heldMax / MiB; n++) {
    socket.add(1_000_000 + n, "get", { key: text, n });
  }
  assert.match(socket.all("FatalError")[0]?.error ?? "", /inbound buffers are full/);
});

Deno.test("BU3 the quota is empty after all sockets have closed", () => {
  const budget = new InboundQuota(1000);
  const accounts = [1, 2, 3].map(() => budget.open(() => {}));
  for (const account of accounts) budget.reserve(account, 300);
  for (const account of accounts) {
    budget.close(account);
    budget.release(account, 300);
  }
  assert.equal(budget.chars, 0);
});

Deno.test("BU4 too many frames, or too many idle frames, are FatalErrors, and further frames abort the socket", () => {
  for (const [frame, most] of [['{"type":"Pong"}', 1], ['{ "type": "Pong" }', 1], ["junk", 0]] as const) {
    const world = new World();
    const socket = world.connected();
    // A client that sends more Pongs than it receives Pings.
    for (let n = 0; n < 3 * socketLimits.idleFrames.burst && most > 0; n++) {
      socket.raw(frame);
      world.clock.move(1000 / socketLimits.idleFrames.perSecond);
    }
    assert.equal(socket.closedWith, null, "a patient client was thrown out");
    socket.close = (code) => {
      socket.closedWith ??= code;
    };
    for (let n = 0; n <= socketLimits.idleFrames.burst; n++) socket.raw(frame);
    assert.equal(socket.all("FatalError").length, 1);
    for (let n = 0; n < socketLimits.framesAfterEndMax; n++) socket.raw(frame);
    assert.equal(socket.wasCut, true);
  }
});

Deno.test("BU7 a socket with many queued frames gets a small receive window until they are handled", async () => {
  const end = Promise.withResolvers<null>();
  const world = new World({ actions: { wait: () => end.promise } });
  const [flooding, other] = [world.connected(), world.connected()];
  const { callsInFlightMax, slowedCharsMin, slowedFramesMin } = socketLimits;
  // One more is read, and waits to be served.
  const served = callsInFlightMax + 1;
  for (let n = 0; n < served + slowedFramesMin; n++) flooding.act(n, "wait", {});
  assert.equal(flooding.receiveWindow, "normal");
  flooding.act(100_000, "wait", {});
  assert.deepEqual([flooding.receiveWindow, other.receiveWindow, flooding.closedWith], [
    "small",
    "normal",
    null,
  ]);
  const large = world.connected();
  for (let n = 0; n < served; n++) large.act(n, "wait", {});
  large.act(served, "wait", { text: "x".repeat(slowedCharsMin / 2) });
  assert.equal(large.receiveWindow, "normal");
  large.act(served + 1, "wait", { text: "x".repeat(slowedCharsMin / 2) });
  assert.equal(large.receiveWindow, "small");
  end.resolve(null);
  await until(() => flooding.all("ActionResponse").length === served + slowedFramesMin + 1);
  assert.deepEqual([flooding.receiveWindow, large.receiveWindow], ["normal", "normal"]);
});

Deno.test("BU4 the frame rate limit is a burst and a rate, and a clock set back refills nothing", () => {
  const allowance = new FrameRateLimiter({ burst: 3, perSecond: 10 }, 1_000);
  const take = (now: number, count: number) => Array.from({ length: count }, () => allowance.take(now));
  assert.deepEqual(take(1_000, 4), [true, true, true, false]);
  assert.equal(take(500, 1)[0], false);
  assert.deepEqual(take(100_000, 4).filter(Boolean).length, 3);
});
