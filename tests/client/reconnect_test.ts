/** Sockets of one client that open and close (CL1). */
import assert from "node:assert/strict";
import { ClientClosedError } from "../../mod/client/mod.ts";
import { settle } from "./support/fake_clock.ts";
import { makeTestClient, stateOf, transition, updated } from "./support/test_client.ts";

Deno.test("CL1 a new socket gets Connect, then one ModifyQuerySet with every query, then the calls in order", async () => {
  using test = makeTestClient();
  const { client, sockets } = test;
  assert.equal(sockets.last.url, "ws://server.test/base/api/sync");
  client.subscribe("a:list", { b: 1, a: 2 }, () => {});
  const calls = [
    client.mutation("m:one", {}),
    client.action("m:two", { x: [1] }),
    client.mutation("m:three", {}),
  ];
  client.subscribe("a:other", {}, () => {});
  for (const call of calls) call.catch(() => {});
  const socket = await test.open();
  const [connect, ...rest] = socket.take();
  assert(connect?.type === "Connect");
  assert.match(connect.sessionId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(connect.connectionCount, 0);
  assert.equal(connect.lastCloseReason, null);
  assert.deepEqual(connect.features, ["diffs", "presence"]);
  assert.deepEqual(rest, [
    {
      type: "ModifyQuerySet",
      baseVersion: 0,
      newVersion: 1,
      modifications: [
        { type: "Add", queryId: 0, udfPath: "a:list", args: { b: 1, a: 2 } },
        { type: "Add", queryId: 1, udfPath: "a:other", args: {} },
      ],
    },
    { type: "Mutation", requestId: 0, udfPath: "m:one", args: {} },
    { type: "Action", requestId: 1, udfPath: "m:two", args: { x: [1] } },
    { type: "Mutation", requestId: 2, udfPath: "m:three", args: {} },
  ]);
});

Deno.test("CL3 a Transition with another start version is not applied: the client reconnects", async () => {
  using test = makeTestClient();
  const { client, sockets } = test;
  const seen: unknown[] = [];
  client.subscribe("q", {}, (value) => seen.push(value));
  const first = await test.open();
  first.receive(transition([[0, 0, 0], [1, 0, 3]], [updated(0, "old")]));
  for (const bad of [[[1, 0, 2], [1, 0, 4]], [[0, 0, 3], [1, 0, 4]], [[1, 1, 3], [1, 1, 4]]] as const) {
    const socket = sockets.last;
    socket.receive(transition([...bad], [updated(0, "bad")]));
    assert(socket.dropped);
    client.reconnectNow();
    assert.notEqual(sockets.last, socket);
    const again = await test.open();
    const [connect, modify] = again.take();
    assert(connect?.type === "Connect" && modify?.type === "ModifyQuerySet");
    assert.equal(connect.connectionCount, sockets.all.length - 1);
    assert.match(connect.lastCloseReason ?? "", /Transition starts at/);
    assert.deepEqual([modify.baseVersion, modify.newVersion], [0, 1]);
    assert.deepEqual(modify.modifications, [{ type: "Add", queryId: 0, udfPath: "q", args: {} }]);
    again.receive(transition([[0, 0, 0], [1, 0, 3]], [updated(0, "old")]));
  }
  assert.deepEqual(seen, ["old"], "an equal result after a reconnection is no change");
});

Deno.test("a Transition that ends where it cannot is a fault", async () => {
  for (const end of [[1, 0, 2], [2, 0, 4], [1, 1, 4], [0, 0, 4]] as const) {
    using test = makeTestClient();
    test.client.subscribe("q", {}, () => {});
    const socket = await test.open();
    socket.receive(transition([[0, 0, 0], [1, 0, 3]], [updated(0, 1)]));
    socket.receive(transition([[1, 0, 3], [...end]]));
    assert(socket.dropped, `end ${end}`);
  }
});

Deno.test("CL8 after a reconnection Transitions count for mutations once the queries are restored", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  client.subscribe("q", {}, () => {});
  const first = await test.open();
  first.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 0)]));
  const done = client.mutation("m", {});
  first.receive({ type: "MutationResponse", requestId: 0, success: true, result: 1, ts: 5, logLines: [] });
  first.closeWith(1006);
  await clock.advance(1000);
  const second = await test.open();
  assert.equal(second.take().length, 2, "an answered mutation is not sent again");
  second.receive(transition([[0, 0, 0], [0, 0, 6]]));
  assert.equal(await stateOf(done), "pending", "the queries of this ts are not here yet");
  second.receive(transition([[0, 0, 6], [1, 0, 6]], [updated(0, 1)]));
  assert.equal(await stateOf(done), "resolved");
});

Deno.test("without queries an answered mutation is done at the next handshake", async () => {
  using test = makeTestClient();
  const first = await test.open();
  const done = test.client.mutation("m", {});
  first.receive({ type: "MutationResponse", requestId: 0, success: true, result: 1, ts: 5, logLines: [] });
  first.closeWith(1006);
  assert.equal(await stateOf(done), "pending");
  await test.clock.advance(1000);
  await test.open();
  assert.equal(await stateOf(done), "resolved");
});

Deno.test("CL2 the session stays the same over reconnections and the connection counts increase", async () => {
  using test = makeTestClient();
  const { clock, sockets } = test;
  const ids = new Set<string>();
  const first = await test.open();
  first.closeWith(1012);
  await clock.advance(250);
  assert.equal(sockets.all.length, 2);
  sockets.last.closeWith(1006);
  await clock.advance(1000);
  const third = await test.open();
  for (const socket of [first, third]) {
    const [connect] = socket.sent;
    assert(connect?.type === "Connect");
    ids.add(connect.sessionId);
  }
  assert.equal(ids.size, 1);
  const [connect] = third.sent;
  assert(connect?.type === "Connect");
  assert.equal(connect.connectionCount, 2, "the attempt that never opened counts");
  assert.match(connect.lastCloseReason ?? "", /1006/);
});

Deno.test("CL10 a Ping is answered with a Pong, 30 s of silence with a new socket", async () => {
  using test = makeTestClient();
  const { clock, sockets } = test;
  const socket = await test.open();
  socket.take();
  for (let ping = 0; ping < 10; ping++) {
    await clock.advance(15_000);
    socket.receive({ type: "Ping" });
  }
  assert.deepEqual(socket.take(), Array.from({ length: 10 }, () => ({ type: "Pong" })));
  await clock.advance(29_999);
  assert.equal(sockets.all.length, 1);
  await clock.advance(1000);
  assert(socket.dropped);
  assert.equal(sockets.all.length, 2);
});

Deno.test("messages of an old socket are ignored after it was dropped", async () => {
  using test = makeTestClient();
  const { client, clock, sockets } = test;
  const seen: unknown[] = [];
  client.subscribe("q", {}, (value) => seen.push(value));
  const old = await test.open();
  old.receive({ type: "FatalError", error: "x" });
  await clock.advance(1000);
  const next = await test.open();
  next.receive(transition([[0, 0, 0], [1, 0, 2]], [updated(0, "new")]));
  old.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, "old")]));
  old.closeWith(1006);
  assert.deepEqual(seen, ["new"]);
  assert.equal(client.connectionState().isConnected, true);
  assert.equal(sockets.all.length, 2);
});

Deno.test("frames that are no messages are faults, messages of unknown types are not", async () => {
  for (
    const frame of ["{", "null", new Uint8Array([1]), '{"type":"Transition"}', '{"type":"MutationResponse"']
  ) {
    using test = makeTestClient();
    const socket = await test.open();
    socket.receiveData(frame);
    assert(socket.dropped, `frame ${frame}`);
    assert.equal(test.client.connectionState().phase, "waiting");
  }
  using test = makeTestClient();
  const socket = await test.open();
  socket.receiveData('{"type":"Novelty"}');
  assert(!socket.dropped);
});

Deno.test("a socket that cannot be created or written to is a failed attempt", async () => {
  using test = makeTestClient();
  const { client, clock, sockets } = test;
  const call = client.mutation("m", {});
  call.catch(() => {});
  const first = sockets.last;
  first.sendError = new Error("closing");
  first.open();
  await settle();
  assert(first.dropped);
  sockets.refuse = new Error("not allowed");
  await clock.advance(1000);
  assert.match(client.connectionState().lastCloseReason ?? "", /not allowed/);
  sockets.refuse = null;
  await clock.advance(10_000);
  const last = await test.open();
  assert.deepEqual(last.take().map(({ type }) => type), ["Connect", "Mutation"]);
});

Deno.test("connectionState contains the state for apps", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const states: string[] = [];
  client.onConnectionState(({ phase, isConnected, inflightMutations }) =>
    states.push(`${phase} ${isConnected} ${inflightMutations}`)
  );
  assert.equal(client.connectionState().hasEverConnected, false);
  const socket = await test.open();
  client.mutation("m", {}).catch(() => {});
  client.action("a", {}).catch(() => {});
  await clock.advance(700);
  const { inflightActions, inflightMutations, oldestCallAgeMs } = client.connectionState();
  assert.deepEqual([inflightMutations, inflightActions, oldestCallAgeMs], [1, 1, 700]);
  socket.closeWith(1006);
  await settle();
  const { retries, reconnectsAt, lastCloseReason } = client.connectionState();
  assert.deepEqual([retries, lastCloseReason], [1, "closed with code 1006"]);
  assert.equal(reconnectsAt, clock.now() + 187.5);
  assert.deepEqual(states, ["open true 0", "open true 1", "waiting false 1"]);
  client.reconnectNow();
  assert.equal(client.connectionState().phase, "connecting");
});

Deno.test("close rejects open calls, sends nothing more and leaves no timer behind", async () => {
  const test = makeTestClient();
  const { client, clock } = test;
  const seen: unknown[] = [];
  client.subscribe("q", {}, (value) => seen.push(value));
  client.setAuth(() => new Promise(() => {}));
  const socket = test.sockets.last;
  socket.open();
  const calls = [client.mutation("m", {}), client.action("a", {}), client.query("q", {})];
  client.close();
  client.close();
  for (const call of calls) await assert.rejects(call, ClientClosedError);
  assert(socket.dropped);
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 1)]));
  await settle();
  assert.deepEqual(seen, []);
  assert.equal(clock.pending, 0);
  assert.equal(client.connectionState().phase, "stopped");
  assert.throws(() => client.subscribe("q", {}, () => {}), ClientClosedError);
  await assert.rejects(client.mutation("m", {}), ClientClosedError);
});

/** Returns `maxObservedTs` of the Connect message on a new socket. */
async function connectTs(test: ReturnType<typeof makeTestClient>): Promise<number | undefined> {
  // A socket that has not opened yet is the first one.
  if (test.sockets.last.sent.length > 0) test.sockets.last.closeWith(1012);
  await test.clock.advance(300);
  const [connect] = (await test.open()).take();
  assert(connect?.type === "Connect");
  return connect.maxObservedTs;
}

Deno.test("CL14 Connect contains the highest ts of applied Transitions and of mutation responses", async () => {
  using test = makeTestClient();
  const { client, sockets } = test;
  client.subscribe("q", {}, () => {});
  assert.equal(await connectTs(test), undefined, "nothing was seen yet");
  sockets.last.receive(transition([[0, 0, 0], [1, 0, 3]], [updated(0, 1)]));
  client.mutation("m", {}).catch(() => {});
  await settle();
  sockets.last.receive({
    type: "MutationResponse",
    requestId: 0,
    success: true,
    result: 1,
    ts: 8,
    logLines: [],
  });
  sockets.last.receive(transition([[1, 0, 3], [1, 0, 5]]));
  assert.equal(await connectTs(test), 8, "it was answered, although no Transition has shown it");
  sockets.last.receive(transition([[0, 0, 0], [1, 0, 9]], [updated(0, 2)]));
  client.mutation("m", {}).catch(() => {});
  await settle();
  sockets.last.receive({
    type: "MutationResponse",
    requestId: 1,
    success: false,
    errorMessage: "No",
    errorData: null,
    logLines: [],
  });
  assert.equal(await connectTs(test), 9);
  assert.equal(await connectTs(test), 9, "also after a socket without messages");
});

Deno.test("CL14 after a server lost data, the client does not ask for the lost ts again", async () => {
  using test = makeTestClient();
  const { client, sockets } = test;
  const seen: unknown[] = [];
  client.subscribe("q", {}, (value) => seen.push(value));
  await test.open();
  sockets.last.receive(transition([[0, 0, 0], [1, 0, 90]], [updated(0, "lost")]));
  assert.equal(await connectTs(test), 90);
  sockets.last.receive(transition([[0, 0, 0], [1, 0, 40]], [updated(0, "restored")]));
  sockets.last.receive(transition([[1, 0, 40], [1, 0, 41]], [updated(0, "and on")]));
  assert.deepEqual(seen, ["lost", "restored", "and on"]);
  assert.equal(await connectTs(test), 41);
});
