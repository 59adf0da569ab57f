/** Results and calls over HTTP when no socket can be opened, and the return to a socket. */
import assert from "node:assert/strict";
import { ConnectionLostError, FunctionError } from "../../mod/client/mod.ts";
import type { FakeSocket } from "./support/fake_socket.ts";
import { success } from "./support/http_calls.ts";
import { makePollingTest, turns } from "./support/polling_client.ts";
import { makeTestClient, stateOf, type TestClient, transition, updated } from "./support/test_client.ts";

/** Time for a round: the interval of 3 s and its jitter. */
const ROUND_MS = 3_750;

async function nextRound({ clock }: TestClient, ms = ROUND_MS): Promise<void> {
  await clock.advance(ms);
  await turns();
}

function sentTypes(socket: FakeSocket): string[] {
  return socket.take().map(({ type }) => type);
}

Deno.test("live queries are polled, the newest result is shown, and unchanged parts keep their identity", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  const rows = [{ _id: "a", n: 1 }, { _id: "b", n: 1 }];
  http.answers.set("list", () => success(rows));
  http.answers.set("count", () => success(2));
  const [lists, counts]: [unknown[][], unknown[]] = [[], []];
  client.subscribe("list", { box: 1 }, (value) => lists.push(value as unknown[]));
  client.subscribe("count", {}, (value) => counts.push(value));
  await test.block();
  assert.deepEqual(client.connectionState(), {
    ...client.connectionState(),
    isConnected: true,
    transport: "polling",
    phase: "waiting",
  });
  assert.deepEqual([lists, counts], [[rows], [2]]);
  assert.deepEqual(http.take(), [
    { kind: "query", path: "list", args: { box: 1 }, token: null },
    { kind: "query", path: "count", args: {}, token: null },
  ]);
  rows[1] = { _id: "b", n: 2 };
  await nextRound(test, ROUND_MS - 1);
  assert.deepEqual(http.take(), []);
  await nextRound(test, 1);
  assert.deepEqual(lists[1], rows);
  assert.equal(lists[1]?.[0], lists[0]?.[0]);
  assert.equal(counts.length, 1, "an unchanged result calls no listener");
  await nextRound(test);
  assert.deepEqual([lists.length, counts.length], [2, 1]);
});

Deno.test("a new query is requested immediately and separately; a removed one is not requested again", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  http.answers.set("query", ({ path }) => success(path));
  const end = client.subscribe("old", {}, () => {});
  await test.block();
  http.take();
  const seen: unknown[] = [];
  client.subscribe("new", {}, (value) => seen.push(value));
  await turns();
  assert.deepEqual(http.take().map(({ path }) => path), ["new"]);
  assert.deepEqual(seen, ["new"]);
  end();
  await nextRound(test);
  assert.deepEqual(http.take().map(({ path }) => path), ["new"]);
  assert.equal(await client.query("once", {}), "once");
  await nextRound(test);
  assert.deepEqual(http.take().map(({ path }) => path), ["new", "once", "new"]);
});

Deno.test("six queries are requested together, one round at a time, and a slow server less often", async () => {
  using test = makePollingTest();
  const { client, http, clock } = test;
  let gate = Promise.withResolvers<void>();
  http.answers.set("query", () => gate.promise.then(() => success(1)));
  for (let n = 0; n < 20; n++) client.subscribe("q", { n }, () => {});
  await test.block();
  assert.deepEqual([http.open, http.take().length], [6, 6]);
  await nextRound(test, 20_000);
  assert.equal(http.take().length, 0);
  gate.resolve();
  await turns();
  assert.deepEqual([http.take().length, http.openMost], [14, 6]);
  gate = Promise.withResolvers();
  gate.resolve();
  await nextRound(test, 20_000);
  assert.equal(http.take().length, 0, "the round took 20 s");
  await clock.advance(6_000);
  await turns();
  assert.equal(http.take().length, 20);
});

Deno.test("a query that fails is reported once and recovers; one without an answer keeps its result", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  const failure = { status: "error", errorMessage: "too big", errorData: { code: "big", data: [1] } };
  http.answers.set("query", () => success("fine"));
  http.answers.set("broken", () => Response.json(failure, { status: 400 }));
  const [values, errors]: [unknown[], FunctionError[]] = [[], []];
  client.subscribe("broken", {}, (value) => values.push(value), (error) => errors.push(error));
  client.subscribe("other", {}, (value) => values.push(value));
  await test.block();
  await nextRound(test);
  assert.deepEqual(errors.map(({ message, code, data }) => [message, code, data]), [["too big", "big", [1]]]);
  http.answers.set("broken", () => success("mended"));
  await nextRound(test);
  for (const status of [429, 502, 503]) {
    http.answers.set("broken", () => Response.json(failure, { status }));
    await nextRound(test);
  }
  http.answers.set("broken", () => new Response("<html>", { status: 200 }));
  await nextRound(test);
  assert.deepEqual([values, errors.length], [["fine", "mended"], 1]);
  assert.equal(client.connectionState().transport, "polling");
});

Deno.test("mutations over HTTP run one after another and resolve when a later round contains their writes", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  let n = 0;
  let gate = Promise.withResolvers<void>();
  http.answers.set("query", () => success(n));
  http.answers.set("mutation", () => gate.promise.then(() => success(++n, { ts: 10 + n })));
  const shown: unknown[] = [];
  client.subscribe("n", {}, (value) => shown.push(value));
  await test.block();
  http.take();
  const optimisticUpdate = (store: { setQuery(name: string, args: object, value: unknown): void }) =>
    store.setQuery("n", {}, "soon");
  const first = client.mutation("add", { by: 1 }, { optimisticUpdate });
  const second = client.mutation("add", { by: 2 });
  await turns();
  assert.deepEqual(http.take(), [{ kind: "mutation", path: "add", args: { by: 1 }, token: null }]);
  assert.equal(client.connectionState().inflightMutations, 2);
  assert.equal(client.connectionState().oldestCallAgeMs, 0);
  let slowQuery = Promise.withResolvers<void>();
  http.answers.set("query", () => slowQuery.promise.then(() => success(n)));
  gate.resolve();
  gate = Promise.withResolvers();
  await turns();
  assert.deepEqual(http.take().map(({ kind, args }) => [kind, args]), [["mutation", { by: 2 }], [
    "query",
    {},
  ]]);
  assert.equal(await stateOf(first), "pending", "no result has its write yet");
  assert.deepEqual(shown, [0, "soon"]);
  slowQuery.resolve();
  slowQuery = Promise.withResolvers();
  assert.equal(await first, 1);
  assert.deepEqual(shown, [0, "soon", 1]);
  gate.resolve();
  await turns();
  slowQuery.resolve();
  assert.equal(await second, 2);
  assert.deepEqual(shown, [0, "soon", 1, 2]);
});

Deno.test("CL9 a mutation without a response is sent again, an action is rejected with the reason", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  http.answers.set("query", () => success(0));
  http.answers.set("lost", () => Promise.reject(new TypeError("broken off")));
  http.answers.set("hangs", () => new Promise(() => {}));
  http.answers.set("proxy", () => new Response("<html>", { status: 502 }));
  http.answers.set(
    "bad",
    () =>
      Response.json({
        status: "error",
        errorMessage: "no",
        errorData: { code: "bad", data: 1 },
        logLines: [],
      }, {
        status: 400,
      }),
  );
  http.answers.set("act", () => success("done"));
  const shown: unknown[] = [];
  client.subscribe("n", {}, (value) => shown.push(value));
  await test.block();
  const optimisticUpdate = (store: { setQuery(name: string, args: object, value: unknown): void }) =>
    store.setQuery("n", {}, 1);
  const settled = (promise: Promise<unknown>) => promise.then((value) => value, (error: unknown) => error);
  for (const path of ["lost", "proxy"]) {
    const action = settled(client.action(path, {}));
    assert.match(String(await action), /^ConnectionLostError: .* action /);
    const first = http.names.length;
    const mutation = settled(client.mutation(path, {}, { optimisticUpdate }));
    await turns();
    assert.equal(http.names.length, first + 1, "it is not sent again at once");
    await nextRound(test);
    assert.equal(http.names.length, first + 2, "but with the next round");
    http.answers.set(path, () => success("ok", { ts: 5 }));
    await nextRound(test);
    assert.equal(await mutation, "ok");
    const names = http.names.slice(first);
    assert.deepEqual(names, [names[0], names[0], names[0]]);
    assert.match(String(names[0]), /^[0-9a-f-]{36} \d+$/);
  }
  assert.deepEqual(shown, [0, 1, 0, 1, 0], "updates stay until the writes are shown");
  const hanging = settled(client.mutation("hangs", {}));
  await turns();
  for (let minute = 0; minute < 12; minute++) await nextRound(test, 60_000);
  assert(
    await hanging instanceof ConnectionLostError,
    "after nine minutes the server would no longer recognise it",
  );
  const bad = await settled(client.mutation("bad", {}));
  assert(bad instanceof FunctionError && bad.code === "bad" && bad.data === 1);
  assert.equal(await client.action("act", {}), "done");
  await turns();
  assert(!http.names.includes(null));
});

Deno.test("CL9 a mutation is repeated only if the server recognizes repetitions", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  http.recognises = false;
  http.answers.set("query", () => success(0));
  http.answers.set("lost", () => Promise.reject(new TypeError("broken off")));
  http.answers.set("sound", () => success("ok", { ts: 5 }));
  client.subscribe("n", {}, () => {});
  await test.block();
  await assert.rejects(client.mutation("lost", {}), ConnectionLostError);
  assert.equal(http.names.length, 1);
  // An answer with the header has the same effect.
  http.recognises = true;
  const sound = client.mutation("sound", {});
  await turns();
  const lost = client.mutation("lost", {});
  await turns();
  await nextRound(test);
  assert.equal(http.names.length, 4);
  http.answers.set("lost", () => success("ok", { ts: 6 }));
  await nextRound(test);
  assert.deepEqual([await sound, await lost], ["ok", "ok"]);
});

Deno.test("CL9 a mutation that a proxy refuses permanently is not repeated, and does not delay others", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  http.answers.set("query", () => success(0));
  http.answers.set("sound", () => success("ok", { ts: 5 }));
  client.subscribe("n", {}, () => {});
  await test.block();
  for (const status of [400, 403, 404, 413]) {
    http.answers.set("proxy", () => new Response("<html>", { status }));
    const sent = http.names.length;
    await assert.rejects(client.mutation("proxy", {}), {
      name: "FunctionError",
      message: new RegExp(`status ${status}`),
    });
    assert.equal(http.names.length, sent + 1);
  }
  for (const status of [401, 408, 425, 429, 500, 503]) {
    http.answers.set("proxy", () => new Response("<html>", { status }));
    const again = client.mutation("proxy", {});
    await turns();
    http.answers.set("proxy", () => success(status, { ts: 5 }));
    await nextRound(test);
    assert.equal(await again, status);
  }
});

Deno.test("CL9 a mutation sent on a lost socket is sent again over HTTP with its id, before one that waited", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  http.answers.set("query", () => success(0));
  http.answers.set("mutation", () => success("ok", { ts: 5 }));
  client.subscribe("n", {}, () => {});
  const socket = await test.open();
  const carried = client.mutation("carried", {});
  const [connect, , sent] = socket.take();
  assert(connect?.type === "Connect" && sent?.type === "Mutation");
  socket.closeWith(1006);
  const waited = client.mutation("waited", {});
  await test.block();
  assert.equal(await carried, "ok");
  await nextRound(test);
  assert.equal(await waited, "ok");
  const calls = http.requests.filter(({ kind }) => kind === "mutation");
  assert.deepEqual(calls.map(({ path }) => path), ["carried", "waited"]);
  const { sessionId } = connect;
  assert.deepEqual(http.names, [`${sessionId} ${sent.requestId}`, `${sessionId} ${sent.requestId + 1}`]);
  const later = await test.open();
  assert.deepEqual(sentTypes(later), ["Connect", "ModifyQuerySet"], "nor on a later socket");
});

Deno.test("four actions run concurrently and do not delay mutations", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  http.answers.set("query", () => success(0));
  const gate = Promise.withResolvers<void>();
  http.answers.set("action", ({ args }) => gate.promise.then(() => success(args["n"])));
  http.answers.set("mutation", () => success("ok", { ts: 1 }));
  await test.block();
  const actions = [0, 1, 2, 3, 4, 5].map((n) => client.action("act", { n }));
  await turns();
  assert.equal(http.take().length, 4);
  assert.equal(await client.mutation("m", {}), "ok");
  gate.resolve();
  assert.deepEqual(await Promise.all(actions), [0, 1, 2, 3, 4, 5]);
});

Deno.test("when a socket opens, polling ends, and late responses are not shown", async () => {
  using test = makePollingTest();
  const { client, http, clock } = test;
  let gate = Promise.withResolvers<void>();
  gate.resolve();
  let n = 1;
  http.answers.set("query", () => gate.promise.then(() => success(n)));
  const shown: unknown[] = [];
  client.subscribe("n", {}, (value) => shown.push(value));
  await test.block();
  gate = Promise.withResolvers();
  n = 2;
  await nextRound(test);
  assert.equal(http.open, 1);
  const socket = await test.open();
  assert.equal(client.connectionState().transport, "webSocket");
  socket.receive(transition([[0, 0, 0], [1, 0, 9]], [updated(0, 3)]));
  gate.resolve();
  await turns();
  assert.deepEqual(shown, [1, 3]);
  http.take();
  await clock.advance(20_000);
  assert.deepEqual(http.take(), []);
});

Deno.test("CL14 after polling, Connect contains the ts of mutations answered over HTTP", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  http.answers.set("query", () => success("written"));
  http.answers.set("mutation", () => success(null, { ts: 7 }));
  client.subscribe("text", {}, () => {});
  await test.block();
  await client.mutation("write", {});
  const [connect] = (await test.open()).take();
  assert.ok(connect?.type === "Connect");
  assert.equal(connect.maxObservedTs, 7);
});

Deno.test("a mutation in flight over HTTP when a socket opens keeps its position and gets its response", async () => {
  using test = makePollingTest();
  const { client, http, clock } = test;
  http.answers.set("query", () => success(0));
  const gate = Promise.withResolvers<void>();
  http.answers.set("mutation", () => gate.promise.then(() => success("first", { ts: 4 })));
  client.subscribe("n", {}, () => {});
  await test.block();
  const first = client.mutation("first", {});
  const second = client.mutation("second", {});
  second.catch(() => {});
  await turns();
  const socket = await test.open();
  assert.deepEqual(sentTypes(socket), ["Connect", "ModifyQuerySet"], "the second waits for the first");
  socket.receive(transition([[0, 0, 0], [1, 0, 3]], [updated(0, 0)]));
  gate.resolve();
  await turns();
  assert.deepEqual(sentTypes(socket), ["Mutation"]);
  assert.equal(await stateOf(first), "pending");
  // The socket owes no Transition for it.
  await clock.advance(2_000);
  assert.equal(await first, "first");
});

Deno.test("a mutation committed over HTTP before the connection failed waits for the next socket", async () => {
  using test = makePollingTest();
  const { client, http, clock } = test;
  const shown: unknown[] = [];
  http.answers.set("query", () => success(0));
  http.answers.set("mutation", () => {
    http.up = false;
    return success("done", { ts: 4 });
  });
  client.subscribe("n", {}, (value) => shown.push(value));
  await test.block();
  const optimisticUpdate = (store: { setQuery(name: string, args: object, value: unknown): void }) =>
    store.setQuery("n", {}, 1);
  const mutation = client.mutation("m", {}, { optimisticUpdate });
  await turns();
  assert.equal(client.connectionState().transport, null);
  await clock.advance(300);
  assert.equal(await stateOf(mutation), "pending");
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 4]], [updated(0, 1)]));
  assert.equal(await mutation, "done");
  assert.deepEqual([...new Set(shown)], [0, 1], "what it did stayed in sight");
});

Deno.test("without queries HTTP is checked and calls resolve; after a failure the client is offline", async () => {
  using test = makePollingTest();
  const { client, http, clock, sockets } = test;
  http.answers.set("mutation", () => success("ok", { ts: 1 }));
  await test.block();
  assert.equal(await client.mutation("m", {}), "ok");
  const looks = () => http.requests.filter(({ kind }) => kind === "health").length;
  const before = looks();
  await nextRound(test);
  assert(looks() > before);
  http.up = false;
  await nextRound(test);
  assert.deepEqual([client.connectionState().transport, client.connectionState().isConnected], [null, false]);
  const waits = client.mutation("m", {});
  assert.equal(await stateOf(waits), "pending");
  http.up = true;
  await clock.advance(16_000);
  sockets.last.closeWith(1006);
  await turns();
  await clock.advance(2_000);
  assert.equal(await waits, "ok");
});

Deno.test("waking tries a socket and polls immediately", async () => {
  using test = makePollingTest();
  const { client, http, sockets } = test;
  http.answers.set("query", () => success(0));
  client.subscribe("n", {}, () => {});
  await test.block();
  http.take();
  const before = sockets.all.length;
  client.reconnectNow();
  await turns();
  assert.deepEqual([http.take().length, sockets.all.length], [1, before + 1]);
});

Deno.test("closing ends requests and polling, and rejects calls in flight", async () => {
  const test = makePollingTest();
  const { client, http, clock } = test;
  http.answers.set("query", () => new Promise(() => {}));
  http.answers.set("mutation", () => new Promise(() => {}));
  client.subscribe("n", {}, () => {});
  await test.block();
  const mutation = client.mutation("m", {});
  await turns();
  assert.equal(http.open, 2);
  client.close();
  await assert.rejects(mutation, { name: "ClientClosedError" });
  await turns();
  assert.deepEqual([http.open, clock.pending], [0, 0]);
});

Deno.test("the option switches polling off", async () => {
  using test = makeTestClient();
  for (let attempt = 0; attempt < 5; attempt++) {
    test.sockets.last.closeWith(1006);
    await test.clock.advance(20_000);
  }
  assert.equal(test.client.connectionState().transport, null);
});

Deno.test("a mutation over HTTP is not done before a new socket has restored the queries", async () => {
  using test = makePollingTest();
  const { client, http, clock } = test;
  const shown: unknown[] = [];
  http.answers.set("query", () => success("old"));
  http.answers.set("mutation", () => {
    http.up = false;
    return success("done", { ts: 4 });
  });
  client.subscribe("n", {}, (value) => shown.push(value));
  await test.block();
  const optimisticUpdate = (store: { setQuery(name: string, args: object, value: unknown): void }) =>
    store.setQuery("n", {}, "soon");
  const mutation = client.mutation("m", {}, { optimisticUpdate });
  await turns();
  const socket = await test.open();
  await clock.advance(5_000);
  assert.deepEqual([await stateOf(mutation), shown], ["pending", ["old", "soon"]], "the queries are slow");
  socket.receive(transition([[0, 0, 0], [1, 0, 3]], [updated(0, "new")]));
  await clock.advance(5_000);
  assert.deepEqual([await stateOf(mutation), shown], ["resolved", ["old", "soon", "new"]]);
});

Deno.test("a mutation over HTTP does not wait forever for a query without a response", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  const shown: unknown[] = [];
  http.answers.set("query", () => success("old"));
  http.answers.set("slow", () => success(0));
  http.answers.set("mutation", () => success("done", { ts: 4 }));
  client.subscribe("n", {}, (value) => shown.push(value));
  client.subscribe("slow", {}, () => {});
  await test.block();
  http.answers.set("query", () => success("new"));
  http.answers.set("slow", () => new Response("<html>", { status: 504 }));
  const optimisticUpdate = (store: { setQuery(name: string, args: object, value: unknown): void }) =>
    store.setQuery("n", {}, "soon");
  const mutation = client.mutation("m", {}, { optimisticUpdate });
  await turns();
  await nextRound(test);
  assert.deepEqual([await stateOf(mutation), shown], ["pending", ["old", "soon"]]);
  for (let round = 0; round < 12; round++) await nextRound(test);
  assert.deepEqual([await stateOf(mutation), shown], ["resolved", ["old", "soon", "new"]]);
});

Deno.test("a query without an answer in the last round is requested with a new one", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  http.answers.set("query", ({ path }) => success(path));
  for (const path of ["kept", "lost"]) client.subscribe(path, {}, () => {});
  await test.block();
  http.answers.set("lost", () => new Response("<html>", { status: 504 }));
  await nextRound(test);
  http.take();
  client.subscribe("new", {}, () => {});
  await turns();
  assert.deepEqual(http.take().map(({ path }) => path), ["lost", "new"]);
});
