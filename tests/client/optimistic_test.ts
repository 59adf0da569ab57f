/** Optimistic updates: layered, replayed over new results, and removed together with the arrival of the real result. */
import assert from "node:assert/strict";
import {
  type FunctionName,
  functionReference,
  type OptimisticStore,
  type ResultOf,
} from "../../mod/client/mod.ts";
import { settle } from "./support/fake_clock.ts";
import { makeTestClient, transition, updated } from "./support/test_client.ts";
import { nextTick } from "../support/waiting.ts";

interface Row {
  readonly _id: string;
  readonly n: number;
}

const list = functionReference<"query", Record<string, never>, readonly Row[]>("list");
const bump = functionReference<"mutation", { by: number }, null>("bump");

function add(row: Row): (store: OptimisticStore) => void {
  return (store) => store.setQuery(list, {}, [...store.getQuery(list, {}) ?? [], row]);
}

/** Changes all results of a query. The arguments of a type parameter have the type `ArgsOf`. */
function changeAll<Name extends FunctionName<"query">>(
  store: OptimisticStore,
  name: Name,
  change: (value: ResultOf<Name>) => ResultOf<Name>,
): void {
  for (const { args, value } of store.getAllQueries(name)) store.setQuery(name, args, change(value));
}

async function listening() {
  const test = makeTestClient();
  const seen: (readonly Row[])[] = [];
  test.client.subscribe(list, {}, (rows) => seen.push(rows));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [{ _id: "a", n: 1 }])]));
  return { ...test, seen, socket, [Symbol.dispose]: () => test[Symbol.dispose]() };
}

function ids(rows: readonly Row[] | undefined): string {
  return rows?.map(({ _id }) => _id).join("") ?? "";
}

Deno.test("CL7 an update is visible immediately and is replaced by the real result in one step", async () => {
  using test = await listening();
  const { client, seen, socket } = test;
  const done = client.mutation("m", {}, { optimisticUpdate: add({ _id: "?", n: 0 }) });
  assert.deepEqual(seen.map(ids), ["a", "a?"]);
  socket.receive({
    type: "MutationResponse",
    requestId: 0,
    success: true,
    result: null,
    ts: 2,
    logLines: [],
  });
  assert.deepEqual(seen.map(ids), ["a", "a?"]);
  socket.receive(transition([[1, 0, 1], [1, 0, 2]], [updated(0, [{ _id: "a", n: 1 }, { _id: "b", n: 2 }])]));
  assert.deepEqual(seen.map(ids), ["a", "a?", "ab"]);
  await done;
});

Deno.test("layers are replayed in order over new results, and each is removed with its own mutation", async () => {
  using test = await listening();
  const { client, seen, socket } = test;
  const calls = ["x", "y", "z"].map((_id) =>
    client.mutation("m", {}, { optimisticUpdate: add({ _id, n: 0 }) })
  );
  for (const call of calls) call.catch(() => {});
  socket.receive(transition([[1, 0, 1], [1, 0, 2]], [updated(0, [{ _id: "b", n: 1 }])]));
  socket.receive({
    type: "MutationResponse",
    requestId: 1,
    success: false,
    errorMessage: "",
    errorData: null,
    logLines: [],
  });
  socket.receive({
    type: "MutationResponse",
    requestId: 0,
    success: true,
    result: null,
    ts: 3,
    logLines: [],
  });
  socket.receive(transition([[1, 0, 2], [1, 0, 3]], [updated(0, [{ _id: "b", n: 1 }, { _id: "x", n: 1 }])]));
  assert.deepEqual(seen.map(ids), ["a", "ax", "axy", "axyz", "bxyz", "bxz", "bxz"]);
});

Deno.test("results that a replay does not change keep their identity and notify no listener", async () => {
  using test = await listening();
  const { client, seen, socket } = test;
  client.mutation("m", {}, { optimisticUpdate: add({ _id: "x", n: 0 }) }).catch(() => {});
  const shown = seen.at(-1);
  socket.receive(transition([[1, 0, 1], [1, 0, 2]]));
  assert.equal(seen.length, 2);
  socket.receive(transition([[1, 0, 2], [1, 0, 3]], [updated(0, [{ _id: "a", n: 1 }, { _id: "b", n: 1 }])]));
  assert.equal(seen.at(-1)?.[0], shown?.[0]);
  assert.equal(seen.at(-1)?.[2], shown?.[1]);
});

Deno.test("an update stays over a reconnection", async () => {
  using test = await listening();
  const { client, clock, seen, socket } = test;
  const done = client.mutation("m", {}, { optimisticUpdate: add({ _id: "x", n: 0 }) });
  socket.closeWith(1006);
  await clock.advance(1000);
  const again = await test.open();
  again.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [{ _id: "a", n: 1 }])]));
  assert.deepEqual(seen.map(ids), ["a", "ax"]);
  again.receive({ type: "MutationResponse", requestId: 0, success: true, result: null, ts: 2, logLines: [] });
  again.receive(transition([[1, 0, 1], [1, 0, 2]], [updated(0, [{ _id: "a", n: 1 }, { _id: "x", n: 5 }])]));
  await done;
  assert.deepEqual(seen.map(ids), ["a", "ax", "ax"]);
});

Deno.test("an update that throws rejects the mutation; one that throws in a replay loses only its layer", async () => {
  using test = await listening();
  const { client, seen, socket } = test;
  socket.take();
  await assert.rejects(
    client.mutation("m", {}, {
      optimisticUpdate: () => {
        throw new Error("mine");
      },
    }),
    /mine/,
  );
  assert.deepEqual(socket.take(), [], "nothing was sent");
  const unhandled: unknown[] = [];
  const onUnhandled = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(String(event.reason));
  };
  globalThis.addEventListener("unhandledrejection", onUnhandled);
  let runs = 0;
  const done = client.mutation("m", {}, {
    optimisticUpdate: (store) => {
      if (++runs > 1) throw new Error("again");
      add({ _id: "x", n: 0 })(store);
    },
  });
  client.mutation("m", {}, { optimisticUpdate: add({ _id: "y", n: 0 }) }).catch(() => {});
  socket.receive(transition([[1, 0, 1], [1, 0, 2]], [updated(0, [])]));
  assert.deepEqual(seen.map(ids), ["a", "ax", "axy", "y"]);
  // The first mutation above took the request id 0 with it.
  socket.receive({ type: "MutationResponse", requestId: 1, success: true, result: 3, ts: 2, logLines: [] });
  assert.equal(await done, 3);
  await nextTick();
  globalThis.removeEventListener("unhandledrejection", onUnhandled);
  assert.deepEqual(unhandled, ["Error: again"]);
});

Deno.test("an update reads arguments and all queries of a function, and cannot change them", async () => {
  using test = makeTestClient();
  const { client } = test;
  const seen: unknown[] = [];
  for (const page of [1, 2]) client.subscribe("pages", { page }, (value) => seen.push([page, value]));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [1]), updated(1, [2])]));
  client.mutation(bump, { by: 10 }, {
    optimisticUpdate: (store, { by }) => {
      changeAll(store, "pages", (value) => {
        const numbers = value as number[];
        assert.throws(() => numbers.push(0), TypeError);
        return numbers.map((n) => n + by);
      });
      assert.deepEqual(store.getQuery("pages", { page: 2 }), [12]);
      assert.equal(store.getQuery("pages", { page: 3 }), undefined);
      store.setQuery("pages", { page: 3 }, "nobody looks");
    },
  }).catch(() => {});
  assert.deepEqual(seen, [[1, [1]], [2, [2]], [1, [11]], [2, [12]]]);
  await settle();
});

Deno.test("a query that is removed and added again does not show an old update", async () => {
  using test = makeTestClient();
  const { client } = test;
  const socket = await test.open();
  const end = client.subscribe(list, {}, () => {});
  await settle();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [])]));
  client.mutation("m", {}, {
    optimisticUpdate: (store) => {
      if (store.getQuery(list, {}) !== undefined) add({ _id: "x", n: 0 })(store);
    },
  }).catch(() => {});
  end();
  await settle();
  const seen: string[] = [];
  client.subscribe(list, {}, (rows) => seen.push(ids(rows)));
  await settle();
  assert.deepEqual(seen, []);
  socket.receive(transition([[1, 0, 1], [2, 0, 1]], [{ type: "QueryRemoved", queryId: 0 }]));
  socket.receive(transition([[2, 0, 1], [3, 0, 1]], [updated(1, [{ _id: "a", n: 1 }])]));
  assert.deepEqual(seen, ["ax"]);
});

Deno.test("an update has no effect on a query without a result, so a failure leaves nothing behind", async () => {
  using test = makeTestClient();
  const { client } = test;
  const seen: string[] = [];
  client.subscribe(list, {}, (rows) => seen.push(ids(rows)));
  const socket = await test.open();
  const watch = client.watchQuery(list, {});
  const failing = client.mutation("m", {}, { optimisticUpdate: add({ _id: "x", n: 0 }) });
  const lasting = client.mutation("m", {}, { optimisticUpdate: add({ _id: "y", n: 0 }) });
  for (const call of [failing, lasting]) call.catch(() => {});
  await settle();
  assert.deepEqual([seen, watch.localResult()], [[], undefined]);
  socket.receive({
    type: "MutationResponse",
    requestId: 0,
    success: false,
    errorMessage: "no",
    errorData: null,
    logLines: [],
  });
  await assert.rejects(failing, /no/);
  assert.deepEqual([seen, watch.localResult()], [[], undefined]);
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, [{ _id: "a", n: 1 }])]));
  assert.deepEqual(seen, ["ay"], "pending optimistic updates are applied to the result when it arrives");
});
