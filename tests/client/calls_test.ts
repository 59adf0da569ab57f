/** Mutations and actions on the wire, and when their promises end (SG4). */
import assert from "node:assert/strict";
import { ConnectionLostError, FunctionError, functionReference } from "../../mod/client/mod.ts";
import { settle } from "./support/fake_clock.ts";
import type { FakeSocket } from "./support/fake_socket.ts";
import { makeTestClient, stateOf, transition, updated } from "./support/test_client.ts";

Deno.test("CL7 a mutation resolves when a Transition reaches its ts, not before", async () => {
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

Deno.test("a mutation whose ts is already visible resolves with its response", async () => {
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

Deno.test("omitted arguments are an empty object, required ones must be passed, and arrays may be read-only", async () => {
  using test = makeTestClient();
  const { client } = test;
  const socket = await test.open();
  void client.query("q").catch(() => {});
  void client.mutation("m").catch(() => {});
  void client.mutation("m", undefined, { optimisticUpdate: () => {} }).catch(() => {});
  void client.action("a").catch(() => {});
  client.watchQuery("w").onUpdate(() => {})();
  await settle();
  const calls = socket.sent.filter(({ type }) => type === "Mutation" || type === "Action");
  assert.deepEqual(calls.map((call) => "args" in call && call.args), [{}, {}, {}]);
  await assert.rejects(client.mutation("m", null as never), /expected an object/);
  const tags = ["red", "green"] as const;
  const tagged = functionReference<"mutation", { tags: string[]; sizes: [number, number][] }, null>(
    "m:tagged",
  );
  void client.mutation(tagged, { tags, sizes: [[1, 2]] as const }, {
    optimisticUpdate: (_store, args) => void args.tags.push("blue"),
  }).catch(() => {});
  // @ts-expect-error The argument `tags` has strings.
  void client.mutation(tagged, { tags: [1] as const, sizes: [] }).catch(() => {});
  const needing = functionReference<"mutation", { n: number }, null>("m:needing");
  // @ts-expect-error The argument `n` is missing.
  void client.mutation(needing).catch(() => {});
});

Deno.test("CL9 after a reconnection unanswered mutations are sent again unchanged, and actions in flight fail", async () => {
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

Deno.test("responses to unknown calls change nothing", async () => {
  using test = makeTestClient();
  const socket = await test.open();
  const act = test.client.action("a", {});
  socket.receive({ type: "MutationResponse", requestId: 0, success: true, result: 1, ts: 1, logLines: [] });
  socket.receive({ type: "ActionResponse", requestId: 9, success: true, result: 1, logLines: [] });
  assert.equal(await stateOf(act), "pending", "a mutation's answer does not settle an action");
  socket.receive({ type: "ActionResponse", requestId: 0, success: true, result: "yes", logLines: [] });
  assert.equal(await act, "yes");
});

Deno.test("at most 64 calls are in flight, 48 of them actions, and the others keep their order", async () => {
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

Deno.test("waiting calls are sent after a reconnection in their order", async () => {
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

Deno.test("CL9 a mutation is not sent again when the server would not recognise it any more", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const socket = await test.open();
  client.subscribe("n", {}, () => {});
  await settle();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, "old")]));
  const shown = client.watchQuery("n", {});
  const late = client.mutation("late", {}, { optimisticUpdate: (store) => store.setQuery("n", {}, "mine") });
  late.catch(() => {});
  await clock.advance(60_000);
  await test.open();
  assert.deepEqual(sentCalls(test.sockets.last), ["late"], "after a minute it is");
  clock.sleep(8 * 60_000 + 1);
  const waited = client.mutation("waited", {});
  waited.catch(() => {});
  test.sockets.last.closeWith(1006);
  const never = client.mutation("never sent", {});
  never.catch(() => {});
  assert.equal(shown.localResult(), "mine");
  await clock.advance(60_000);
  await test.open();
  await assert.rejects(late, ConnectionLostError);
  assert.equal(shown.localResult(), "old");
  assert.deepEqual(sentCalls(test.sockets.last), ["waited", "never sent"]);
});

function sentCalls(socket: FakeSocket): string[] {
  return socket.sent.flatMap((message) => message.type === "Mutation" ? [message.udfPath] : []);
}
