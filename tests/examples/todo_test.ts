/** The functions of examples/todo: access, consecutive live pages, search, and the cleanup. */
import assert from "node:assert/strict";
import type { Id, ResultOf } from "syncline/server";
import { createTestServer, type TestCaller } from "syncline/test";
import { api } from "../../examples/todo/functions/_generated.ts";

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

Deno.test("lists belong to their user: other users cannot see, change or remove them", async () => {
  await using server = await open();
  const [ada, eve] = [await server.asUser("Ada"), await server.asUser("Eve")];
  const { list, items: [item] } = await listWith(ada, ["secret"]);
  assert(item !== undefined);
  assert.deepEqual(await ada.query(api.lists.mine), [{
    _id: list,
    title: "Home",
    isMine: true,
    isShared: false,
  }]);
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

Deno.test("pinned pages remain complete while items are added and removed", async () => {
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

Deno.test("open and done items are distinguished and counted, live", async () => {
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

Deno.test("search finds complete words and a prefix of the last one, only in the user's items", async () => {
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

Deno.test("invalid values are refused: empty texts, long texts, invalid dates, too many lists", async () => {
  await using server = await open();
  const ada = await server.asUser("Ada");
  const { list } = await listWith(ada, []);
  await assert.rejects(ada.mutation(api.items.add, { list, text: "  " }), { code: "empty_item" });
  await assert.rejects(ada.mutation(api.items.add, { list, text: "x".repeat(501) }), /args\.text/);
  await assert.rejects(ada.mutation(api.items.add, { list, text: "x", due: "tomorrow" }), /args\.due/);
  await assert.rejects(ada.mutation(api.lists.create, { title: "" }), { code: "no_title" });
  for (let n = 1; n < 100; n++) await ada.mutation(api.lists.create, { title: `list ${n}` });
  await assert.rejects(ada.mutation(api.lists.create, { title: "one more" }), { code: "too_many" });
  // The number of allowed items is in the user's profile.
  const eve = await server.asUser({ name: "Eve", profile: { listsMax: 1 } });
  await eve.mutation(api.lists.create, { title: "only one" });
  await assert.rejects(eve.mutation(api.lists.create, { title: "one more" }), { code: "too_many" });
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

/** Uploads and attaches files like the page. Resolves to the item's files on the page. */
async function attach(
  server: Awaited<ReturnType<typeof open>>,
  { user, item, text }: { readonly user: TestCaller; readonly item: Id<"items">; readonly text: string },
) {
  const url = await user.mutation(api.attachments.uploadUrl, { item });
  const file = await server.upload(url, new File([text], `${text}.txt`, { type: "text/plain" }));
  return { file, added: await user.mutation(api.attachments.add, { item, file }) };
}

Deno.test("a list is shared by its link: members see and change it, until they leave or sharing ends", async () => {
  await using server = await open();
  const [ada, bob, eve] = [
    await server.asUser("Ada"),
    await server.asUser("Bob"),
    await server.asUser("Eve"),
  ];
  const { list, items: [item] } = await listWith(ada, ["milk"]);
  assert(item !== undefined);
  await assert.rejects(bob.mutation(api.sharing.invite, { list }), { code: "no_list" });
  const invite = await ada.mutation(api.sharing.invite, { list });
  assert.equal(await ada.mutation(api.sharing.invite, { list }), invite);
  await assert.rejects(eve.mutation(api.sharing.join, { invite: `${invite}x` }), { code: "no_invite" });
  await assert.rejects(server.mutation(api.sharing.join, { invite }), { code: "signed_out" });

  using seen = bob.subscribe(api.lists.mine);
  assert.deepEqual(await seen.next(), []);
  for (let again = 0; again < 2; again++) {
    assert.equal(await bob.mutation(api.sharing.join, { invite }), list);
  }
  assert.deepEqual(seen.results.at(-1), [{ _id: list, title: "Home", isMine: false, isShared: true }]);
  await bob.mutation(api.items.add, { list, text: "oat milk" });
  await bob.mutation(api.items.edit, { item, text: "more milk" });
  for (const member of [ada, bob]) {
    assert.deepEqual(
      texts(await member.query(api.items.page, { list, show: "all", cursor: null })),
      "oat milk more milk",
    );
    assert.equal((await member.query(api.items.search, { text: "milk" })).length, 2);
    assert.equal(await member.query(api.items.openCount, { list }), 2);
  }
  assert.deepEqual(await eve.query(api.items.search, { text: "milk" }), []);
  for (const refused of [api.lists.remove, api.sharing.invite, api.sharing.stop]) {
    await assert.rejects(bob.mutation(refused, { list }), { code: "not_owner" });
  }
  await bob.mutation(api.sharing.leave, { list });
  await assert.rejects(bob.mutation(api.items.edit, { item, text: "x" }), { code: "no_item" });
  await bob.mutation(api.sharing.join, { invite });
  await ada.mutation(api.sharing.stop, { list });
  assert.deepEqual(seen.results.at(-1), []);
  await assert.rejects(bob.mutation(api.sharing.join, { invite }), { code: "no_invite" });
  assert.notEqual(await ada.mutation(api.sharing.invite, { list }), invite);
});

Deno.test("files of items: only members see them and get expiring links", async () => {
  await using server = await open();
  const [ada, bob, eve] = [
    await server.asUser("Ada"),
    await server.asUser("Bob"),
    await server.asUser("Eve"),
  ];
  const { list, items: [item] } = await listWith(ada, ["paint"]);
  assert(item !== undefined);
  await bob.mutation(api.sharing.join, { invite: await ada.mutation(api.sharing.invite, { list }) });
  using page = bob.subscribe(api.items.page, { list, show: "all", cursor: null });
  assert.deepEqual((await page.next()).page[0]?.files, []);
  const { file, added } = await attach(server, { user: ada, item, text: "red" });
  assert(added);
  const [shown] = page.results.at(-1)?.page[0]?.files ?? [];
  assert(shown !== undefined);
  assert.deepEqual([shown.name, shown.contentType, shown.size], ["red.txt", "text/plain", 3]);
  assert(!JSON.stringify(page.results).includes(file), "the file's own id is not shown");

  const attachment = shown._id;
  const url = await bob.query(api.attachments.link, { attachment });
  assert.equal(await (await server.fetch(url ?? ""))?.text(), "red");
  for (const other of [eve, server.asAnonymous()]) {
    const refusals = [
      other.query(api.attachments.link, { attachment }),
      other.mutation(api.attachments.remove, { attachment }),
      other.mutation(api.attachments.uploadUrl, { item }),
      other.mutation(api.attachments.add, { item, file }),
    ];
    for (const refusal of refusals) {
      await assert.rejects(refusal, ({ code }) => ["no_item", "no_file"].includes(code));
    }
  }
  await server.advance(301_000);
  assert.equal((await server.fetch(url ?? ""))?.status, 403);

  await bob.mutation(api.attachments.remove, { attachment });
  assert.deepEqual(page.results.at(-1)?.page[0]?.files, []);
  assert.equal((await server.fetch(`/api/storage/${file}`))?.status, 404);
});

Deno.test("only one's own new file is attached, and only as many as fit", async () => {
  await using server = await open();
  const [ada, eve] = [await server.asUser("Ada"), await server.asUser("Eve")];
  const { items: [item] } = await listWith(ada, ["paint"]);
  const { items: [hers] } = await listWith(eve, ["steal"]);
  assert(item !== undefined && hers !== undefined);
  const { file } = await attach(server, { user: ada, item, text: "1" });
  await assert.rejects(eve.mutation(api.attachments.add, { item: hers, file }), { code: "no_file" });
  await assert.rejects(ada.mutation(api.attachments.add, { item, file }), { code: "no_file" });
  const late = await ada.mutation(api.attachments.uploadUrl, { item });
  for (let n = 2; n <= 10; n++) await attach(server, { user: ada, item, text: String(n) });
  await assert.rejects(ada.mutation(api.attachments.uploadUrl, { item }), { code: "too_many" });
  const eleventh = await server.upload(late, new Blob(["x"]));
  assert.equal(await ada.mutation(api.attachments.add, { item, file: eleventh }), false);
  assert.equal((await server.fetch(`/api/storage/${eleventh}`))?.status, 404);
});

Deno.test("files are deleted with their item, their list and by the cleanup", async () => {
  await using server = await open();
  const ada = await server.asUser("Ada");
  const { list, items: [first, second, third] } = await listWith(ada, ["a", "b", "c"]);
  assert(first !== undefined && second !== undefined && third !== undefined);
  const files: Id<"_storage">[] = [];
  for (const item of [first, second, third]) {
    files.push((await attach(server, { user: ada, item, text: "x" })).file);
  }
  const there = () =>
    Promise.all(files.map(async (file) => (await server.fetch(`/api/storage/${file}`))?.status));
  await ada.mutation(api.items.remove, { item: first });
  assert.deepEqual(await there(), [404, 200, 200]);
  await ada.mutation(api.items.setDone, { item: second, done: true });
  await server.advance(31 * DAY_MS);
  assert.deepEqual(await there(), [404, 404, 200]);
  await ada.mutation(api.lists.remove, { list });
  assert.deepEqual(await there(), [404, 404, 404]);
  const left = await server.run(async (ctx) => (await ctx.db.query("attachments").collect()).length);
  assert.equal(left, 0);
});
