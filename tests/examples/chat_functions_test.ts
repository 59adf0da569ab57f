/** The functions of examples/chat, without a browser. */
import assert from "node:assert/strict";
import { joinRoom } from "syncline/presence";
import { createTestServer } from "syncline/test";

const open = () =>
  createTestServer({ functionsDir: new URL("../../examples/chat/functions", import.meta.url) });

Deno.test("one user sees what another one sends", async () => {
  await using server = await open();
  const [ada, linus] = [await server.asUser("Ada"), await server.asUser("Linus")];
  using seen = linus.subscribe("messages:list", { channel: "general" });
  assert.deepEqual(await seen.next(), []);
  await ada.mutation("messages:send", { channel: "general", name: "Ada", body: " hello " });
  const [message] = await seen.next() as { body: string; name: string; _creationTime: number }[];
  assert.deepEqual([message?.body, message?.name], ["hello", "Ada"]);
  assert.equal(Math.floor(message?._creationTime ?? 0), server.now());
  await ada.mutation("messages:send", { channel: "random", name: "Ada", body: "elsewhere" });
  assert.equal(seen.results.length, 2);
});

Deno.test("only the newest 50 messages are listed, the newest first", async () => {
  await using server = await open();
  for (let n = 1; n <= 53; n++) {
    await server.mutation("messages:send", { channel: "general", name: "Ada", body: `m${n}` });
  }
  const list = await server.query("messages:list", { channel: "general" }) as { body: string }[];
  assert.deepEqual([list.length, list[0]?.body, list.at(-1)?.body], [50, "m53", "m4"]);
});

Deno.test("messages without a text or a name are refused, by field", async () => {
  await using server = await open();
  const send = (name: string, body: string) =>
    server.mutation("messages:send", { channel: "general", name, body });
  await assert.rejects(send("Ada", " "), { code: "empty_message", data: { field: "body" } });
  await assert.rejects(send(" ", "hello"), { code: "no_name", data: { field: "name" } });
  await assert.rejects(send("Ada", "x".repeat(2001)), /args\.body/);
});

Deno.test("channels have one form of name and exist once", async () => {
  await using server = await open();
  const create = (name: string) => server.mutation("channels:create", { name });
  assert.equal(await create("Deep  Sea"), "deep-sea");
  assert.equal(await create("deep-sea"), "deep-sea");
  await create("alpha");
  assert.deepEqual(await server.query("channels:list"), ["alpha", "deep-sea"]);
  for (const name of ["", "a/b", "x".repeat(33)]) await assert.rejects(create(name), { code: "bad_channel" });
});

Deno.test("users with an account have its name and recognize their messages, and guests have the name they enter", async () => {
  await using server = await open();
  const ada = await server.asUser({ name: "Ada", email: "ada@example.com" });
  const nameless = await server.asUser({ email: "grace@example.com" });
  for (const [who, name] of [[ada, "Someone else"], [nameless, ""], [server, "Ada"]] as const) {
    await who.mutation("messages:send", { channel: "general", name, body: "hi" });
  }
  const list = await server.query("messages:list", { channel: "general" }) as {
    name: string;
    author?: string;
  }[];
  assert.deepEqual(list.map(({ name, author }) => [name, author ?? null]), [
    ["Ada", null],
    ["grace", nameless.userId],
    ["Ada", ada.userId],
  ]);
  assert.deepEqual(await ada.query("people:me"), { name: "Ada", author: ada.userId });
  assert.equal(await server.query("people:me"), null);
});

Deno.test("messages are paginated, newest first", async () => {
  await using server = await open();
  for (let n = 1; n <= 5; n++) {
    await server.mutation("messages:send", { channel: "general", name: "Ada", body: `m${n}` });
  }
  type Page = { page: { body: string }[]; continueCursor: string; isDone: boolean };
  const read = (cursor: string | null, numItems = 3) =>
    server.query("messages:page", { channel: "general", paginationOpts: { cursor, numItems } }) as Promise<
      Page
    >;
  const first = await read(null);
  const second = await read(first.continueCursor);
  assert.deepEqual([...first.page, ...second.page].map(({ body }) => body), ["m5", "m4", "m3", "m2", "m1"]);
  assert.deepEqual([first.isDone, second.isDone], [false, true]);
  await assert.rejects(read(null, 1_000_000), /args\.paginationOpts\.numItems/);
  await assert.rejects(read("made up"), { code: "invalid_cursor" });
});

Deno.test("pages join the rooms of channels only, signed-in people under the name of their account", async () => {
  await using server = await open();
  const ada = await server.asUser("Ada");
  const [guest, member] = [server.asAnonymous().connect(), ada.connect()];
  const rooms = [guest, member].map((client) => joinRoom(client, "channel general", { isTyping: false }));
  const refused = joinRoom(guest, "elsewhere", {});
  await server.advance(1_000);
  const names = rooms[0]?.view.members.map(({ info }) => (info as { name: string } | null)?.name);
  assert.deepEqual(names?.toSorted(), ["Ada", undefined]);
  assert.notEqual(refused.view.error, null);
});

Deno.test("the assistant answers through a stream, and the message has the text afterwards", async () => {
  await using server = await open();
  type Message = { name: string; body: string; stream?: string };
  using seen = server.subscribe("messages:list", { channel: "general" });
  await server.mutation("messages:send", { channel: "general", name: "Ada", body: "/ask Why?" });
  await server.advance(0);
  const begun = (seen.results.flat() as Message[]).find(({ stream }) => stream !== undefined);
  assert.deepEqual([begun?.name, begun?.body], ["Assistant", ""]);
  const streamed = await (await server.fetch(`/api/streams/${begun?.stream}`)).text();
  const [message] = await server.query("messages:list", { channel: "general" }) as Message[];
  assert.deepEqual([message?.body, message?.stream], [streamed, undefined]);
  assert.match(streamed, /^You asked: “Why\?”/);
});
