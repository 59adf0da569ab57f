/** Streams of a real server: actions write them in an isolate, and clients read them over HTTP. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { StreamError } from "../../mod/client/streams/mod.ts";
import { createTestServer } from "../../mod/testing/mod.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { bearerOf, startTestServer } from "../auth/server/test_server.ts";
import { until } from "../support/waiting.ts";
import { functions, generate, read, textOf } from "./support.ts";

Deno.test("streams of a real server", async (t) => {
  await using server = await startTestServer({ functions });
  const client = new SynclineClient(server.url, { polling: false, webSocket: WebSocket });

  await t.step(
    "SM1 readers receive words while the action writes, and the file has all of them",
    async () => {
      const { id, file } = await generate(client, { words: 40, holdAt: 19 });
      const readers = [read(client, id), read(client, id)];
      await until(() => readers.every(({ parts }) => parts.join("") === textOf(20)));
      await client.mutation("answers:release", { stream: id });
      for (const { end } of readers) assert.equal(await end, "done");
      for (const { parts } of readers) assert.equal(parts.join(""), textOf(40));
      const stored = await fetch(client.fileUrl(await file as string));
      assert.equal(await stored.text(), textOf(40));
      assert.match(stored.headers.get("content-type") ?? "", /^text\/plain/);
      const late = read(client, id);
      assert.equal(await late.end, "done");
      assert.equal(late.parts.join(""), textOf(40));
    },
  );

  await t.step(
    "SM2 a response has the content from an offset on, and no page can be made of it",
    async () => {
      const { id, file } = await generate(client, { words: 2 });
      await file;
      const response = await fetch(`${server.url}/api/streams/${id}?offset=7`);
      assert.equal(await response.text(), "wörd1 ");
      assert.equal(response.headers.get("cache-control"), "no-store, no-transform");
      assert.equal(response.headers.get("content-security-policy"), "default-src 'none'; sandbox");
      const head = await fetch(`${server.url}/api/streams/${id}`, { method: "HEAD" });
      assert.equal(head.headers.get("content-type"), "text/plain; charset=utf-8");
      const unknown = await fetch(`${server.url}/api/streams/unknown`);
      assert.equal((await unknown.json()).errorData.code, "not_found");
    },
  );

  for (const fault of ["throw", "forget", "loop"]) {
    await t.step(
      `SM4 readers receive an error after the last word of an action that ends early (${fault})`,
      async () => {
        const { id } = await generate(client, { words: 3, pauseMs: 5, fault });
        const { parts, end } = read(client, id);
        const error = await end;
        assert.ok(error instanceof StreamError);
        assert.equal(error.code, "stream_failed");
        assert.equal(parts.join(""), textOf(3));
      },
    );
  }

  await t.step("SM1 SM4 a route writes a stream, which fails if the route ends before it", async () => {
    for (const [query, expected] of [["?end", "done"], ["", "stream_failed"]] as const) {
      const response = await fetch(`${server.url}/speak${query}`, { method: "POST", body: "from a route" });
      const { parts, end } = read(client, await response.text());
      const ending = await end;
      assert.equal(ending === "done" ? ending : ending.code, expected);
      assert.equal(parts.join(""), "from a route");
    }
  });

  await t.step("SM7 administrators see the streams", async () => {
    const { id } = await generate(client, { words: 2, holdAt: 0 });
    const { parts, end } = read(client, id);
    await until(() => parts.length > 0);
    const headers = { Authorization: `Bearer ${await bearerOf(server)}` };
    const { streams } = await (await fetch(`${server.url}/api/admin/live`, { headers })).json();
    assert.deepEqual([streams.open, streams.readers], [1, 1]);
    const [newest] = streams.newest;
    assert.deepEqual([newest.udfPath, newest.state, newest.readers], ["answers:generate", "open", 1]);
    assert.ok(!JSON.stringify(streams).includes(id), "ids are secret");
    await client.mutation("answers:release", { stream: id });
    assert.equal(await end, "done");
  });
  client.close();
});

const LARGE_APP = {
  "large.ts": `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
export const write = untypedAction({ handler: async (ctx, { text, count }) => {
  const stream = await ctx.streams.create({ store: false, contentType: "text/event-stream" });
  await stream.write(text.repeat(count));
  await stream.write(new Uint8Array([0, 255]));
  await stream.end();
  return stream.id;
} });
export const wrong = untypedAction({ handler: async (ctx) => (await ctx.streams.create()).write(1) });
export const inQuery = untypedQuery({ handler: (ctx) => ctx.streams });
export const inMutation = untypedMutation({ handler: (ctx) => ctx.streams });
`,
};

Deno.test("SM5 long chunks arrive in pieces in a test server, where queries and mutations have no streams", async () => {
  await using folder = await TempFolder.with(LARGE_APP);
  await using server = await createTestServer({ functionsDir: folder.path });
  const id = await server.action("large:write", { text: "a😀é", count: 100_000 });
  const response = await server.fetch(`/api/streams/${id}`);
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const bytes = await response.bytes();
  assert.equal(new TextDecoder().decode(bytes.subarray(0, -2)), "a😀é".repeat(100_000));
  assert.deepEqual([...bytes.subarray(-2)], [0, 255]);
  await assert.rejects(server.action("large:wrong"), /write\(\) needs a string or a Uint8Array, not number/);
  await assert.rejects(
    server.query("large:inQuery"),
    /ctx\.streams is not available in queries and mutations/,
  );
  await assert.rejects(server.mutation("large:inMutation"), /ctx\.streams is not available/);
});
