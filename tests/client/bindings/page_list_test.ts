/** A list in pages without React, when no further query may be live. */
import assert from "node:assert/strict";
import { liveQueriesMax } from "../../../mod/client/limits.ts";
import { PageList } from "../../../mod/client/bindings/page_list.ts";
import { settle } from "../support/fake_clock.ts";
import { makeTestClient, transition, updated } from "../support/test_client.ts";

const query = { path: "rows", args: {} };

function page(names: string, more: { readonly splitCursor?: string; readonly isDone?: boolean } = {}) {
  const rows = [...names].map((_id) => ({ _id }));
  return { page: rows, isDone: false, continueCursor: `after ${names.at(-1)}`, ...more };
}

function shown(list: PageList): string {
  return (list.read().results as { _id: string }[]).map(({ _id }) => _id).join("");
}

Deno.test("a list without a free query for its next page stays live, and loads the page when one is free", async () => {
  using test = makeTestClient();
  const { client } = test;
  const list = new PageList(client, query.path, query.args, 2);
  let changes = 0;
  list.subscribe(() => changes++);
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, page("ab"))]));
  const ends = Array.from(
    { length: liveQueriesMax - 1 },
    (_, n) => client.subscribe("other", { n }, () => {}),
  );
  await settle();
  assert.throws(() => list.loadMore(), RangeError);
  assert.equal(list.read().status, "CanLoadMore");
  socket.receive(transition([[1, 0, 1], [2, 0, 2]], [updated(0, page("ac"))]));
  assert.deepEqual([shown(list), changes > 0], ["ac", true]);
  const before = changes;
  socket.receive(transition([[2, 0, 2], [2, 0, 3]], [updated(0, page("ad"))]));
  assert.deepEqual([shown(list), changes], ["ad", before + 1]);

  for (const end of ends.slice(0, 2)) end();
  await settle();
  list.loadMore();
  await settle();
  assert.equal(list.read().status, "LoadingMore");
  const added = socket.sent.flatMap((message) =>
    message.type === "ModifyQuerySet" ? message.modifications : []
  ).filter((modification) => modification.type === "Add" && modification.udfPath === "rows");
  assert.equal(added.length, 3);
  const [first, second] = added.slice(1).map(({ queryId }) => queryId);
  const querySet = socket.sent.filter(({ type }) => type === "ModifyQuerySet").length;
  socket.receive(transition([[2, 0, 3], [querySet, 0, 4]], [
    updated(first ?? -1, page("ad")),
    updated(second ?? -1, page("ef", { isDone: true })),
  ]));
  assert.deepEqual([shown(list), list.read().status], ["adef", "Exhausted"]);
});

Deno.test("a grown page that cannot be split without a free query is shown completely, and split later", async () => {
  using test = makeTestClient();
  const { client } = test;
  const list = new PageList(client, query.path, query.args, 2);
  list.subscribe(() => {});
  const socket = await test.open();
  const ends = Array.from(
    { length: liveQueriesMax - 1 },
    (_, n) => client.subscribe("other", { n }, () => {}),
  );
  await settle();
  const grown = page("abcdef", { splitCursor: "after b" });
  socket.receive(transition([[0, 0, 0], [2, 0, 1]], [updated(0, grown)]));
  assert.equal(shown(list), "abcdef");
  for (const end of ends.slice(0, 2)) end();
  await settle();
  socket.take();
  socket.receive(transition([[2, 0, 1], [2, 0, 2]], [updated(0, { ...grown, isDone: true })]));
  await settle();
  const cut = socket.take().flatMap((message) =>
    message.type === "ModifyQuerySet" ? message.modifications : []
  );
  assert.deepEqual(cut.map(({ type }) => type), ["Add", "Add"]);
  assert.equal(shown(list), "abcdef");
});

Deno.test("a page that cannot be requested leaves the list unchanged", async () => {
  using test = makeTestClient();
  const list = new PageList(test.client, query.path, query.args, 2);
  list.subscribe(() => {});
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, page("ab"))]));
  assert.throws(() => list.loadMore(NaN), TypeError);
  assert.equal(list.read().status, "CanLoadMore");
  list.loadMore();
  assert.equal(list.read().status, "LoadingMore");
});
