/** Queries, their results and their subscribers, with a server played by the test (SG1 to SG5). */
import assert from "node:assert/strict";
import { FunctionError } from "../../mod/client/mod.ts";
import { settle } from "./support/fake_clock.ts";
import { makeTestClient, patched, stateOf, transition, updated } from "./support/test_client.ts";
import { nextTick } from "../support/waiting.ts";

Deno.test("CL5 equal queries share one queryId regardless of the order of keys, and ids are never reused", async () => {
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
  assert.deepEqual(socket.take(), [], "the query is still in use");
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

Deno.test("a query that is removed and added in one task is not changed", async () => {
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

Deno.test("a late subscriber gets the current result in a separate task", async () => {
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

Deno.test("all results of a Transition are available before any subscriber is called", async () => {
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

Deno.test("a diff applies to the last result and keeps unchanged parts", async () => {
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

Deno.test("CL4 an inapplicable diff drops the whole Transition", async () => {
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

Deno.test("a diff on a new socket has no base", async () => {
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

Deno.test("CL13 a diff applies to the server's result, not to optimistic updates", async () => {
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

Deno.test("CL6 results of unknown queries are ignored and the version advances", async () => {
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

Deno.test("query returns the server's next result, also if it equals the one from before a reconnection", async () => {
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

Deno.test("query leaves no subscription and rejects when the query fails", async () => {
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

Deno.test("results are read-only", async () => {
  using test = makeTestClient();
  let result: number[][] = [];
  test.client.subscribe("q", {}, (value) => result = value as number[][]);
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [[1]])]));
  assert.throws(() => result.push([2]), TypeError);
  assert.throws(() => result[0]?.push(2), TypeError);
});

Deno.test("a subscriber that throws does not affect others", async () => {
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
  await nextTick();
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
