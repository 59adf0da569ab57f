/** The functions of examples/chat, without a browser. */
import assert from "node:assert/strict";
import { createTestServer } from "syncline/test";

const open = () =>
  createTestServer({ functionsDir: new URL("../../examples/chat/functions", import.meta.url) });

Deno.test("what one person sends, another one sees", async () => {
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
