/** The first Transition of a socket: the age of its state. */
import assert from "node:assert/strict";
import { anonymous } from "../../mod/functions/identity.ts";
import type { Outcome } from "../../mod/functions/outcome.ts";
import { socketLimits } from "../../mod/limits.ts";
import { settle, type TestSocket } from "./support/test_socket.ts";
import { World, type WorldOptions } from "./support/world.ts";

/** A world where each read is answered by hand, and a slow query is subscribed to at ts 1. */
async function slowWorld(options: WorldOptions = {}): Promise<World> {
  const world = new World({ ...options, auto: false, queries: { slow: (ctx) => ctx.get("a") ?? null } });
  world.host.write({ a: 1 });
  world.connected().add(0, "slow");
  await settle();
  await answer(world, "slow");
  return world;
}

/** Pins the newest batch and answers one of its queries. */
async function answer(world: World, udfPath: string): Promise<void> {
  world.host.pin();
  await settle();
  world.host.answer(udfPath);
  await settle();
}

/** The ts of each Transition, in order. */
function shownTs(socket: TestSocket): number[] {
  return socket.all("Transition").map(({ endVersion }) => endVersion.ts);
}

Deno.test("SG12 a new socket is not sent an old result of a slow query", async () => {
  const world = await slowWorld();
  world.host.write({ a: 2 });
  await settle();
  const socket = world.connected();
  socket.add(0, "slow");
  await settle();
  assert.deepEqual(shownTs(socket), []);
  await answer(world, "slow");
  assert.deepEqual(shownTs(socket), [2]);
  assert.equal(socket.value(0), 2);
});

Deno.test("SG12 a run that started before the socket connected does not answer it", async () => {
  const world = await slowWorld();
  world.host.write({ a: 2 });
  await settle();
  world.host.pin();
  await settle();
  world.host.write({ a: 3 });
  const socket = world.connected();
  socket.add(0, "slow");
  await settle();
  world.host.answer("slow");
  await settle();
  assert.deepEqual(shownTs(socket), [], "the run saw ts 2");
  await answer(world, "slow");
  assert.deepEqual(shownTs(socket), [3]);
  assert.equal(socket.value(0), 3);
});

Deno.test("SG12 commits during the computation of the first result do not delay it further", async () => {
  const world = await slowWorld();
  world.host.write({ a: 2 });
  await settle();
  const socket = world.connected();
  socket.add(0, "slow");
  await settle();
  world.host.pin();
  await settle();
  world.host.write({ a: 3 });
  world.host.answer("slow");
  await settle();
  assert.deepEqual(shownTs(socket), [2]);
});

Deno.test("SG12 SH5 results that are still valid are sent with the newest ts, without a run", async () => {
  const world = new World();
  world.host.write({ a: 1 });
  world.connected().add(0, "get", { key: "a" });
  await settle();
  const runs = world.host.runs.length;
  world.host.write({ b: 1 });
  world.host.write({ b: 2 });
  const socket = world.connected({ maxObservedTs: 2 });
  socket.add(7, "get", { key: "a" });
  await settle();
  assert.deepEqual(shownTs(socket), [3]);
  assert.equal(socket.value(7), 1);
  assert.equal(world.host.runs.length, runs);
});

Deno.test("SG12 the first Transitions of a signed-in socket are not older either", async () => {
  const world = await slowWorld();
  world.host.write({ a: 2 });
  await settle();
  const socket = world.connected();
  socket.authenticate(0, "u1.s1");
  socket.add(0, "slow");
  await settle();
  assert.deepEqual(shownTs(socket), [2], "the Authenticate shows no query");
  await answer(world, "slow");
  assert.deepEqual(shownTs(socket), [2, 2]);
});

Deno.test("SG12 queries added later are not older than the state at the connect", async () => {
  const world = await slowWorld();
  world.host.write({ a: 2 });
  await settle();
  const socket = world.connected();
  await settle();
  world.host.write({ b: 1 });
  socket.add(0, "slow");
  await settle();
  assert.deepEqual(shownTs(socket), []);
  await answer(world, "slow");
  assert.deepEqual(shownTs(socket), [3]);
});

Deno.test("SG12 WS18 a lagging server waits for the ts that the client has seen elsewhere", async () => {
  for (const follows of [false, true]) {
    const world = new World();
    world.host.follows = follows;
    world.host.write({ a: 1 });
    world.host.muted = true;
    world.host.write({ b: 1 });
    world.host.write({ b: 2 });
    const socket = world.connected({ maxObservedTs: 3 });
    socket.authenticate(0, "u1.s1");
    socket.modify();
    await settle();
    assert.deepEqual(shownTs(socket), []);
    world.host.muted = false;
    world.host.notifyMuted();
    await settle();
    assert.deepEqual(shownTs(socket), [3, 3], `follows: ${follows}`);
  }
});

Deno.test("SG12 WS18 a waiting socket advances at the commit it waits for, and not before", async () => {
  const world = new World();
  world.host.write({ a: 1 });
  const socket = world.connected({ maxObservedTs: 3 });
  socket.add(0, "get", { key: "a" });
  await settle();
  world.host.write({ b: 1 });
  await settle();
  assert.deepEqual(shownTs(socket), []);
  world.host.write({ b: 2 });
  await settle();
  assert.deepEqual(shownTs(socket), [3]);
  assert.equal(socket.value(0), 1);
});

Deno.test("SG12 WS18 the wait for a ts is bounded, then the newest state is sent", async () => {
  const world = await slowWorld();
  world.host.write({ a: 2 });
  await settle();
  const socket = world.connected({ maxObservedTs: Number.MAX_SAFE_INTEGER });
  socket.add(0, "slow");
  await answer(world, "slow");
  world.host.write({ a: 3 });
  await world.clock.advance(socketLimits.observedTsWaitMs - 2_000);
  assert.deepEqual(shownTs(socket), []);
  await world.clock.advance(4_000);
  assert.deepEqual(shownTs(socket), [], "the newest state, not the newest result");
  await answer(world, "slow");
  assert.deepEqual(shownTs(socket), [3]);
  world.host.write({ b: 1 });
  socket.mutate(0, "set", { key: "b", value: 2 });
  await settle();
  world.host.commit();
  await settle();
  assert.equal(socket.version.ts, 5, "from then on it is a socket like any other");
});

Deno.test("SG12 a socket closed while it waits leaves no state behind", async () => {
  const world = new World();
  const socket = world.connected({ maxObservedTs: 9 });
  socket.modify();
  await settle();
  socket.drop();
  await settle();
  world.hub.validate();
  assert.equal(world.clock.timers, 0);
});

Deno.test("WS18 maxObservedTs must be an integer that a client may have seen", async () => {
  for (const maxObservedTs of [-1, 1.5, 2 ** 53, "7", null]) {
    const world = new World();
    const socket = world.socket();
    socket.connect({ maxObservedTs: maxObservedTs as number });
    await settle();
    assert.match(socket.all("FatalError")[0]?.error ?? "", /maxObservedTs/);
  }
  const world = new World();
  const socket = world.connected({ maxObservedTs: 0 });
  socket.modify();
  await settle();
  assert.deepEqual(shownTs(socket), [0]);
});

Deno.test("SG4 a mutation whose commit is received after its response is followed by a Transition", async () => {
  for (const follows of [false, true]) {
    const world = new World();
    world.host.follows = follows;
    const socket = world.connected();
    socket.add(0, "get", { key: "a" });
    await settle();
    world.host.muted = true;
    socket.mutate(0, "set", { key: "b", value: 1 });
    await settle();
    assert.equal(socket.all("MutationResponse").length, 1);
    assert.equal(socket.version.ts, 0);
    world.host.muted = false;
    world.host.notifyMuted();
    await settle();
    assert.equal(socket.version.ts, 1, `follows: ${follows}`);
  }
});

Deno.test("SG4 SG12 a mutation repeated on a new socket is followed by a Transition that contains it", async () => {
  const world = await slowWorld();
  const first = world.connected();
  first.add(0, "slow");
  await settle();
  first.mutate(0, "set", { key: "a", value: 2 });
  await settle();
  world.host.commit();
  first.drop();
  const again = world.connected();
  again.add(0, "slow");
  again.mutate(0, "set", { key: "a", value: 2 });
  await settle();
  world.host.commit();
  await settle();
  const [response] = again.all("MutationResponse");
  assert.ok(response?.success && response.ts === 2);
  assert.deepEqual(
    shownTs(again),
    [2],
    "empty: the socket shows nothing yet, and does not wait for the slow query",
  );
  assert.equal(again.version.querySet, 0);
  await answer(world, "slow");
  assert.deepEqual(shownTs(again), [2, 2]);
  assert.equal(again.value(0), 2);
});

/** A hub that has processed ts 1 while the writer's process has answered for ts 2. `hear` delivers the rest. */
async function hubBehind() {
  const reached = Promise.withResolvers<void>();
  const newest = { ts: 0, waitFor: () => reached.promise };
  const world = new World({ newest });
  newest.ts = world.host.write({ a: 1 });
  const ask = async () => {
    const call = { udfPath: "get", args: { key: "a" }, identity: anonymous, origin: "client" } as const;
    const outcome: Outcome = await world.hub.query(call);
    return outcome.ok ? outcome.value : null;
  };
  assert.equal(await ask(), "1");
  world.host.muted = true;
  newest.ts = world.host.write({ a: 2 });
  const hear = () => {
    world.host.muted = false;
    world.host.notifyMuted();
    reached.resolve();
  };
  return { world, newest, ask, hear };
}

Deno.test("HC6 a cached result does not answer a call while commits of another process are missing", async () => {
  const { world, ask, hear } = await hubBehind();
  const answers: unknown[] = [];
  const asked = ask().then((value) => answers.push(value));
  await settle();
  assert.deepEqual(answers, []);
  hear();
  await asked;
  assert.deepEqual(answers, ["2"]);
  const runs = world.host.runs.length;
  assert.equal(await ask(), "2");
  assert.equal(world.host.runs.length, runs, "answered from the kept result again");
});

Deno.test("SG12 the state at the connect is that of the server, not of an outdated worker", async () => {
  const { world, hear } = await hubBehind();
  const socket = world.connected();
  socket.add(0, "get", { key: "a" });
  await settle();
  assert.deepEqual(shownTs(socket), []);
  hear();
  await settle();
  assert.deepEqual(shownTs(socket), [2]);
  assert.equal(socket.value(0), 2);
});
