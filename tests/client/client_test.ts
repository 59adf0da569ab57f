/** The conversation of the client with a server played by the test (contract: Client reconnect sequence). */
import assert from "node:assert/strict";
import { ClientClosedError, ConnectionLostError, FunctionError } from "../../mod/client/mod.ts";
import { settle } from "./support/fake_clock.ts";
import { makeTestClient, patched, stateOf, transition, updated } from "./support/test_client.ts";

Deno.test("a new socket gets Connect, then one ModifyQuerySet with every query, then the calls in order", async () => {
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
  assert.deepEqual(connect.features, ["diffs"]);
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

Deno.test("equal queries share one queryId, whatever the order of keys, and ids are never used again", async () => {
  using test = makeTestClient();
  const { client } = test;
  const socket = await test.open();
  socket.take();
  const seen: unknown[][] = [[], []];
  const ends = [
    client.subscribe("q", { a: 1, b: { c: 2, d: undefined } }, (value) => seen[0]?.push(value)),
    client.subscribe("q", { b: { c: 2 }, a: 1 }, (value) => seen[1]?.push(value)),
  ];
  await settle();
  assert.equal(socket.take().length, 1);
  socket.receive(transition([[0, 0, 0], [1, 0, 5]], [updated(0, "x")]));
  assert.deepEqual(seen, [["x"], ["x"]]);
  ends[0]?.();
  ends[0]?.();
  await settle();
  assert.deepEqual(socket.take(), [], "somebody still uses the query");
  ends[1]?.();
  await settle();
  const removal = {
    type: "ModifyQuerySet",
    baseVersion: 1,
    newVersion: 2,
    modifications: [{ type: "Remove", queryId: 0 }],
  };
  assert.deepEqual(socket.take(), [removal]);
  client.subscribe("q", { a: 1, b: { c: 2 } }, () => {});
  await settle();
  const [again] = socket.take();
  assert(again?.type === "ModifyQuerySet" && again.modifications[0]?.type === "Add");
  assert.equal(again.modifications[0].queryId, 1);
});

Deno.test("a query that is left and taken up in one turn is not touched", async () => {
  using test = makeTestClient();
  const socket = await test.open();
  const end = test.client.subscribe("q", {}, () => {});
  await settle();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 7)]));
  socket.take();
  end();
  const seen: unknown[] = [];
  test.client.subscribe("q", {}, (value) => seen.push(value));
  await settle();
  assert.deepEqual(socket.take(), []);
  assert.deepEqual(seen, [7], "the result that is there is delivered");
});

Deno.test("a late subscriber gets the present result in a turn of its own", async () => {
  using test = makeTestClient();
  const socket = await test.open();
  const seen: unknown[] = [];
  test.client.subscribe("q", {}, (value) => seen.push(["early", value]));
  await settle();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 7)]));
  test.client.subscribe("q", {}, (value) => seen.push(["late", value]));
  assert.deepEqual(seen, [["early", 7]]);
  await settle();
  assert.deepEqual(seen, [["early", 7], ["late", 7]]);
});

Deno.test("all results of a Transition are there before any subscriber is called", async () => {
  using test = makeTestClient();
  const { client } = test;
  const socket = await test.open();
  const b = client.watchQuery("b", {});
  const pairs: unknown[] = [];
  client.subscribe("a", {}, (value) => pairs.push([value, b.localResult()]));
  b.onUpdate(() => {});
  await settle();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 1), updated(1, 1)]));
  socket.receive(transition([[1, 0, 1], [1, 0, 2]], [updated(0, 2), updated(1, 2)]));
  assert.deepEqual(pairs, [[1, 1], [2, 2]]);
});

Deno.test("a Transition that starts elsewhere is not applied: the client drops the socket and starts over", async () => {
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

Deno.test("a diff builds on the last result and keeps what it does not touch", async () => {
  using test = makeTestClient();
  const seen: { rows: { n: number }[] }[] = [];
  test.client.subscribe("q", {}, (value) => seen.push(value as { rows: { n: number }[] }));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, { rows: [{ n: 1 }, { n: 2 }] })]));
  const diff = { $o: { p: { rows: { $a: [1, { $p: { $o: { s: { n: 3 } } } }, [{ n: 4 }]] } } } };
  socket.receive(transition([[1, 0, 1], [1, 0, 2]], [patched(0, diff)]));
  assert.deepEqual(seen[1], { rows: [{ n: 1 }, { n: 3 }, { n: 4 }] });
  assert.equal(seen[0]?.rows[0], seen[1]?.rows[0]);
});

Deno.test("a diff that does not fit drops the whole Transition", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const seen: unknown[] = [];
  client.subscribe("a", {}, (value) => seen.push(["a", value]));
  client.subscribe("b", {}, (value) => seen.push(["b", value]));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [1]), updated(1, [1])]));
  socket.receive(transition([[1, 0, 1], [1, 0, 2]], [updated(0, [2]), patched(1, { $a: [9] })]));
  assert(socket.dropped);
  assert.deepEqual(seen, [["a", [1]], ["b", [1]]]);
  await clock.advance(1000);
  const again = await test.open();
  again.receive(transition([[0, 0, 0], [1, 0, 2]], [updated(0, [2]), updated(1, [1, 2])]));
  assert.deepEqual(seen.slice(2), [["a", [2]], ["b", [1, 2]]]);
});

Deno.test("a diff on a new socket has nothing to build on", async () => {
  using test = makeTestClient();
  test.client.subscribe("q", {}, () => {});
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [1])]));
  socket.closeWith(1006);
  await test.clock.advance(1000);
  const again = await test.open();
  again.receive(transition([[0, 0, 0], [1, 0, 1]], [patched(0, { $a: [1, [2]] })]));
  assert(again.dropped);
});

Deno.test("a diff builds on the server's result, not on what optimistic updates show", async () => {
  using test = makeTestClient();
  const { client } = test;
  const seen: unknown[] = [];
  client.subscribe("q", {}, (value) => seen.push(value));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [1])]));
  const done = client.mutation("m", {}, {
    optimisticUpdate: (store) => store.setQuery("q", {}, [...store.getQuery("q", {}) as number[], 99]),
  });
  done.catch(() => {});
  socket.receive(transition([[1, 0, 1], [1, 0, 2]], [patched(0, { $a: [1, [2]] })]));
  assert.deepEqual(seen, [[1], [1, 99], [1, 2, 99]]);
});

Deno.test("results of unknown queries are ignored and the version advances", async () => {
  using test = makeTestClient();
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [0, 0, 4]], [updated(77, 1), patched(78, { $a: [5] })]));
  socket.receive(transition([[0, 0, 4], [0, 0, 5]]));
  assert(!socket.dropped);
});

Deno.test("a failed query stays live and recovers", async () => {
  using test = makeTestClient();
  const seen: unknown[] = [];
  test.client.subscribe("q", {}, (value) => seen.push(value), (error) => seen.push(error));
  const socket = await test.open();
  const errorData = { code: "nope", data: { n: 1 } };
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [
    { type: "QueryFailed", queryId: 0, errorMessage: "No", errorData, logLines: [] },
  ]));
  const [error] = seen;
  assert(error instanceof FunctionError);
  assert.deepEqual([error.message, error.code, error.data, error.udfPath], ["No", "nope", { n: 1 }, "q"]);
  socket.receive(transition([[1, 0, 1], [1, 0, 2]], [updated(0, "well")]));
  assert.deepEqual(seen.slice(1), ["well"]);
});

Deno.test("a mutation resolves when a Transition reaches its ts, not before", async () => {
  using test = makeTestClient();
  const { client } = test;
  const seen: unknown[] = [];
  client.subscribe("q", {}, (value) => seen.push(value));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, "old")]));
  const done = client.mutation("m", {}).then((result) => seen.push(["done", result]));
  socket.receive({ type: "MutationResponse", requestId: 0, success: true, result: 42, ts: 5, logLines: [] });
  socket.receive(transition([[1, 0, 1], [1, 0, 4]]));
  assert.equal(await stateOf(done), "pending");
  socket.receive(transition([[1, 0, 4], [1, 0, 5]], [updated(0, "new")]));
  assert.equal(await stateOf(done), "resolved");
  assert.deepEqual(seen, ["old", "new", ["done", 42]], "the result is shown before the promise resolves");
});

Deno.test("a mutation whose ts is visible already resolves with its answer", async () => {
  using test = makeTestClient();
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [0, 0, 9]]));
  const done = test.client.mutation("m", {});
  socket.receive({
    type: "MutationResponse",
    requestId: 0,
    success: true,
    result: null,
    ts: 9,
    logLines: [],
  });
  assert.equal(await stateOf(done), "resolved");
});

Deno.test("after a reconnection unanswered mutations are sent again as they were, actions in flight fail", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const first = await test.open();
  const one = client.mutation("m:one", { n: 1 });
  const act = client.action("act", {});
  const two = client.mutation("m:two", { n: 2 });
  assert.deepEqual(first.take().slice(1).map((message) => message.type), ["Mutation", "Action", "Mutation"]);
  first.receive({
    type: "MutationResponse",
    requestId: 2,
    success: false,
    errorMessage: "no",
    errorData: null,
    logLines: [],
  });
  await assert.rejects(two, FunctionError);
  first.closeWith(1006);
  await assert.rejects(act, ConnectionLostError);
  const later = client.action("later", {});
  later.catch(() => {});
  await clock.advance(1000);
  const second = await test.open();
  assert.deepEqual(second.take().slice(1), [
    { type: "Mutation", requestId: 0, udfPath: "m:one", args: { n: 1 } },
    { type: "Action", requestId: 3, udfPath: "later", args: {} },
  ], "an action that had not been sent is sent now");
  assert.equal(await stateOf(one), "pending");
});

Deno.test("after a reconnection Transitions count for mutations once the queries are back", async () => {
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

Deno.test("the session stays the same over reconnections and the counts rise", async () => {
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

Deno.test("a Ping is answered with a Pong, 30 s of silence with a new socket", async () => {
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

Deno.test("what an old socket says after it was dropped counts for nothing", async () => {
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

Deno.test("answers to calls nobody made change nothing", async () => {
  using test = makeTestClient();
  const socket = await test.open();
  const act = test.client.action("a", {});
  socket.receive({ type: "MutationResponse", requestId: 0, success: true, result: 1, ts: 1, logLines: [] });
  socket.receive({ type: "ActionResponse", requestId: 9, success: true, result: 1, logLines: [] });
  assert.equal(await stateOf(act), "pending", "a mutation's answer does not settle an action");
  socket.receive({ type: "ActionResponse", requestId: 0, success: true, result: "yes", logLines: [] });
  assert.equal(await act, "yes");
});

Deno.test("no more than 64 calls are on the wire, 48 of them actions, and the others keep their order", async () => {
  using test = makeTestClient();
  const { client } = test;
  const socket = await test.open();
  socket.take();
  const calls = [
    ...Array.from({ length: 60 }, () => client.action("a", {})),
    ...Array.from({ length: 60 }, (_, n) => client.mutation("m", { n })),
  ];
  for (const call of calls) call.catch(() => {});
  const sent = socket.take();
  assert.equal(sent.filter(({ type }) => type === "Action").length, 48);
  assert.equal(sent.filter(({ type }) => type === "Mutation").length, 16);
  for (let requestId = 60; requestId < 120; requestId++) {
    socket.receive({ type: "MutationResponse", requestId, success: true, result: 0, ts: 1, logLines: [] });
  }
  const mutations = socket.take().filter((message) => message.type === "Mutation");
  assert.deepEqual(mutations.map(({ requestId }) => requestId), Array.from({ length: 44 }, (_, n) => 76 + n));
});

Deno.test("calls that wait are sent after a reconnection in the order they were made", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const first = await test.open();
  for (let n = 0; n < 50; n++) client.action("a", { n }).catch(() => {});
  client.mutation("m", {}).catch(() => {});
  assert.deepEqual(first.take().at(-1), { type: "Mutation", requestId: 50, udfPath: "m", args: {} });
  first.closeWith(1006);
  await clock.advance(1000);
  const second = await test.open();
  const sent = second.take().slice(1).map((message) => "requestId" in message && message.requestId);
  assert.deepEqual(sent, [48, 49, 50]);
});

Deno.test("a subscriber ended by another's callback is not called", async () => {
  using test = makeTestClient();
  const { client } = test;
  const seen: string[] = [];
  client.subscribe("q", {}, () => {
    seen.push("first");
    end();
  });
  const end = client.subscribe("q", {}, () => seen.push("second"));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 7)]));
  assert.deepEqual(seen, ["first"]);
});

Deno.test("the 1025th query is refused", async () => {
  using test = makeTestClient();
  const { client } = test;
  const ends = Array.from({ length: 1024 }, (_, n) => client.subscribe("q", { n }, () => {}));
  assert.throws(() => client.subscribe("q", { n: -1 }, () => {}), RangeError);
  client.subscribe("q", { n: 5 }, () => {});
  ends[0]?.();
  client.subscribe("q", { n: -1 }, () => {});
  const socket = await test.open();
  const modify = socket.take()[1];
  assert(modify?.type === "ModifyQuerySet");
  assert.equal(modify.modifications.length, 1024);
});

Deno.test("changes of the query set wait while 256 Transitions are owed", async () => {
  using test = makeTestClient();
  const socket = await test.open();
  socket.take();
  for (let n = 0; n < 300; n++) {
    test.client.subscribe("q", { n }, () => {});
    await settle();
  }
  assert.equal(socket.take().length, 256);
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 1)]));
  const [rest, ...more] = socket.take();
  assert(rest?.type === "ModifyQuerySet" && more.length === 0);
  assert.equal(rest.modifications.length, 44);
});

Deno.test("query gives the server's next result, also when it equals the one from before a reconnection", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  client.subscribe("q", {}, () => {});
  const socket = await test.open();
  const waiting = client.query("q", {});
  assert.equal(await stateOf(waiting), "pending");
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [1])]));
  assert.deepEqual(await waiting, [1]);
  assert.deepEqual(await client.query("q", {}), [1], "a live result is given at once");
  socket.closeWith(1006);
  const offline = client.query("q", {});
  assert.equal(await stateOf(offline), "pending", "an old result is not given");
  await clock.advance(1000);
  const again = await test.open();
  again.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [1])]));
  assert.deepEqual(await offline, [1]);
});

Deno.test("query leaves nothing behind and rejects when the query fails", async () => {
  using test = makeTestClient();
  const socket = await test.open();
  const waiting = test.client.query("q", {});
  await settle();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [
    { type: "QueryFailed", queryId: 0, errorMessage: "No", errorData: null, logLines: [] },
  ]));
  await assert.rejects(waiting, FunctionError);
  await settle();
  const removal = socket.take().at(-1);
  assert(removal?.type === "ModifyQuerySet");
  assert.deepEqual(removal.modifications, [{ type: "Remove", queryId: 0 }]);
});

Deno.test("arguments are those of the moment of the call", async () => {
  using test = makeTestClient();
  const { client } = test;
  const args = { list: [1] };
  const call = client.mutation("m", args);
  call.catch(() => {});
  args.list.push(2);
  const socket = await test.open();
  assert.deepEqual(socket.take()[1], { type: "Mutation", requestId: 0, udfPath: "m", args: { list: [1] } });
  await assert.rejects(client.mutation("m", { n: NaN }), /args\.n/);
  assert.throws(() => client.subscribe("q", { d: new Date() }, () => {}), /Date/);
  assert.throws(() => client.subscribe(7 as unknown as string, {}, () => {}), TypeError);
});

Deno.test("results are read-only", async () => {
  using test = makeTestClient();
  let result: number[][] = [];
  test.client.subscribe("q", {}, (value) => result = value as number[][]);
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [[1]])]));
  assert.throws(() => result.push([2]), TypeError);
  assert.throws(() => result[0]?.push(2), TypeError);
});

Deno.test("a subscriber that throws disturbs nobody else", async () => {
  using test = makeTestClient();
  const unhandled: unknown[] = [];
  const onUnhandled = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", onUnhandled);
  const seen: unknown[] = [];
  const fault = new Error("mine");
  test.client.subscribe("q", {}, () => {
    throw fault;
  });
  test.client.subscribe("q", {}, (value) => seen.push(value));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, 1)]));
  assert.deepEqual(seen, [1]);
  assert(!socket.dropped);
  await new Promise((resolve) => setTimeout(resolve));
  globalThis.removeEventListener("unhandledrejection", onUnhandled);
  assert.deepEqual(unhandled, [fault]);
});

Deno.test("a subscriber may unsubscribe, subscribe and mutate from its callback", async () => {
  using test = makeTestClient();
  const { client } = test;
  const seen: unknown[] = [];
  const socket = await test.open();
  const end = client.subscribe("a", {}, (value) => {
    seen.push(value);
    end();
    client.mutation("m", {}, { optimisticUpdate: (store) => store.setQuery("b", {}, "guess") }).catch(
      () => {},
    );
  });
  client.subscribe("b", {}, (value) => seen.push(value));
  await settle();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, "a"), updated(1, "b")]));
  assert.deepEqual(seen, ["a", "guess"]);
  socket.receive({
    type: "MutationResponse",
    requestId: 0,
    success: false,
    errorMessage: "",
    errorData: null,
    logLines: [],
  });
  assert.deepEqual(seen, ["a", "guess", "b"]);
});

Deno.test("a socket that cannot be made or written to is a failed attempt", async () => {
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

Deno.test("connectionState tells what an app wants to show", async () => {
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

Deno.test("close rejects what is open, sends nothing more and leaves no timer", async () => {
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
