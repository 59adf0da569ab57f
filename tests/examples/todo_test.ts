/** The functions of examples/todo: who sees what, pages that follow one another live, search, and the cleanup. */
import assert from "node:assert/strict";
import type { ResultOf } from "syncline/server";
import { createTestServer, type TestCaller } from "syncline/test";
import { api } from "../../examples/todo/functions/api.ts";

const DAY_MS = 86_400_000;

const open = () =>
  createTestServer({ functionsDir: new URL("../../examples/todo/functions", import.meta.url) });

async function listWith(user: TestCaller, texts: readonly string[]) {
  const list = await user.mutation(api.lists.create, { title: "Home" });
  const items = [];
  for (const text of texts) items.push(await user.mutation(api.items.add, { list, text }));
  return { list, items };
}

const texts = ({ page }: ResultOf<typeof api.items.page>) => page.map(({ text }) => text).join(" ");

Deno.test("lists belong to their user: nobody else sees, changes or removes them", async () => {
  await using server = await open();
  const [ada, eve] = [await server.asUser("Ada"), await server.asUser("Eve")];
  const { list, items: [item] } = await listWith(ada, ["secret"]);
  assert(item !== undefined);
  assert.deepEqual(await ada.query(api.lists.mine), [{ _id: list, title: "Home" }]);
  assert.equal(await ada.mutation(api.lists.create, { title: " Home " }), list);
  for (const other of [eve, server.asAnonymous()]) {
    assert.deepEqual(await other.query(api.lists.mine), []);
    assert.deepEqual(await other.query(api.items.search, { text: "secret" }), []);
    assert.equal(await other.query(api.items.openCount, { list }), 0);
    const refusals = [
      other.query(api.items.page, { list, show: "all", cursor: null }),
      other.mutation(api.items.add, { list, text: "mine now" }),
      other.mutation(api.items.setDone, { item, done: true }),
      other.mutation(api.items.edit, { item, text: "changed" }),
      other.mutation(api.items.remove, { item }),
      other.mutation(api.lists.remove, { list }),
    ];
    for (const refusal of refusals) {
      await assert.rejects(refusal, ({ code }) => ["no_list", "no_item", "signed_out"].includes(code));
    }
  }
  await ada.mutation(api.lists.remove, { list });
  assert.deepEqual(await ada.query(api.lists.mine), []);
  assert.equal(await server.run(async (ctx) => (await ctx.db.query("items").collect()).length), 0);
});

Deno.test("pages that are pinned stay whole while items come and go", async () => {
  await using server = await open();
  const ada = await server.asUser("Ada");
  const { list, items } = await listWith(ada, ["a", "b", "c", "d", "e"]);
  const first = { list, show: "all", cursor: null, numItems: 2 } as const;
  const start = await ada.query(api.items.page, first);
  assert.deepEqual([texts(start), start.isDone], ["e d", false]);
  const cursor = start.continueCursor;
  using top = ada.subscribe(api.items.page, { ...first, endCursor: cursor });
  using rest = ada.subscribe(api.items.page, { list, show: "all", cursor, numItems: 10 });
  assert.deepEqual([texts(await top.next()), texts(await rest.next())], ["e d", "c b a"]);
  await ada.mutation(api.items.add, { list, text: "f" });
  await ada.mutation(api.items.remove, { item: items[3] ?? assert.fail() });
  await ada.mutation(api.items.remove, { item: items[1] ?? assert.fail() });
  assert.equal(texts(top.results.at(-1) ?? assert.fail()), "f e");
  assert.equal(texts(rest.results.at(-1) ?? assert.fail()), "c a");
});

Deno.test("open and done items are told apart and counted, live", async () => {
  await using server = await open();
  const ada = await server.asUser("Ada");
  const { list, items: [first, second] } = await listWith(ada, ["a", "b", "c"]);
  assert(first !== undefined && second !== undefined);
  using count = ada.subscribe(api.items.openCount, { list });
  assert.equal(await count.next(), 3);
  const shown = async (show: "all" | "open" | "done") =>
    texts(await ada.query(api.items.page, { list, show, cursor: null }));
  await ada.mutation(api.items.setDone, { item: first, done: true });
  assert.deepEqual([await shown("all"), await shown("open"), await shown("done")], ["c b a", "c b", "a"]);
  await ada.mutation(api.items.setDone, { item: first, done: false });
  await ada.mutation(api.items.edit, { item: second, text: " bread " });
  assert.deepEqual([await shown("open"), await shown("done")], ["c bread a", ""]);
  assert.deepEqual(count.results, [3, 2, 3]);
});

Deno.test("search finds words and beginnings of the last one, in one's own items", async () => {
  await using server = await open();
  const [ada, eve] = [await server.asUser("Ada"), await server.asUser("Eve")];
  await listWith(ada, ["Buy oat milk", "Call the milkman", "Water the plants"]);
  await listWith(eve, ["milk of Eve"]);
  using found = ada.subscribe(api.items.search, { text: "milk" });
  const words = (await found.next()).map(({ text }) => text).sort();
  assert.deepEqual(words, ["Buy oat milk", "Call the milkman"]);
  await listWith(ada, ["More milk"]);
  assert.equal(found.results.at(-1)?.length, 3);
  assert.deepEqual(await ada.query(api.items.search, { text: "  " }), []);
});

Deno.test("what does not fit is refused: empty texts, long texts, days that are none, lists without end", async () => {
  await using server = await open();
  const ada = await server.asUser("Ada");
  const { list } = await listWith(ada, []);
  await assert.rejects(ada.mutation(api.items.add, { list, text: "  " }), { code: "empty_item" });
  await assert.rejects(ada.mutation(api.items.add, { list, text: "x".repeat(501) }), /args\.text/);
  await assert.rejects(ada.mutation(api.items.add, { list, text: "x", due: "tomorrow" }), /args\.due/);
  await assert.rejects(ada.mutation(api.lists.create, { title: "" }), { code: "no_title" });
  for (let n = 1; n < 100; n++) await ada.mutation(api.lists.create, { title: `list ${n}` });
  await assert.rejects(ada.mutation(api.lists.create, { title: "one more" }), { code: "too_many" });
});

Deno.test("done items are removed each night after 30 days, open ones and newer ones stay", async () => {
  await using server = await open();
  const ada = await server.asUser("Ada");
  const { list, items: [first, second] } = await listWith(ada, ["old", "newer", "open"]);
  assert(first !== undefined && second !== undefined);
  const all = async () => texts(await ada.query(api.items.page, { list, show: "all", cursor: null }));
  await ada.mutation(api.items.setDone, { item: first, done: true });
  await server.advance(20 * DAY_MS);
  await ada.mutation(api.items.setDone, { item: second, done: true });
  await server.advance(10 * DAY_MS);
  assert.equal(await all(), "open newer old");
  await server.advance(4 * 3_600_000);
  assert.equal(await all(), "open newer");
  await assert.rejects(ada.mutation("cleanup:removeDone"), /no function/);
});

Deno.test("more old items than one transaction removes are removed by several", async () => {
  await using server = await open();
  const ada = await server.asUser("Ada");
  const { list } = await listWith(ada, []);
  const owner = ada.userId;
  await server.run(async (ctx) => {
    const status = { kind: "done", at: server.now() } as const;
    for (let n = 0; n < 2_500; n++) await ctx.db.insert("items", { list, owner, text: "old", status });
  });
  await server.advance(31 * DAY_MS);
  assert.equal(await server.run(async (ctx) => (await ctx.db.query("items").collect()).length), 0);
});
