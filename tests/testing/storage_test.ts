/** `ctx.storage` in a test server: files go up, are read through their URLs, and are deleted, as on a real server. */
import assert from "node:assert/strict";
import { createApi, createFunctions, defineSchema, defineTable, id } from "syncline/server";
import { createTestServer, FunctionError } from "syncline/test";
import { z } from "zod";
import { metadata, resumable, TusClient } from "../storage/support/tus.ts";

const schema = defineSchema({
  photos: defineTable({ file: id("_storage"), caption: z.string() }),
});
const { query, mutation, action } = createFunctions(schema);

const photos = {
  uploadUrl: mutation({ handler: (ctx) => ctx.storage.generateUploadUrl() }),
  add: mutation({
    args: { file: id("_storage"), caption: z.string() },
    handler: async (ctx, photo) => {
      if (await ctx.storage.getMetadata(photo.file) === null) throw new Error("there is no such file");
      return await ctx.db.insert("photos", photo);
    },
  }),
  all: query({
    handler: async (ctx) => {
      const rows = await ctx.db.query("photos").collect();
      return await Promise.all(
        rows.map(async ({ file, caption }) => ({
          caption,
          url: await ctx.storage.getUrl(file),
          signed: await ctx.storage.getSignedUrl(file, { ttlSeconds: 60 }),
          about: await ctx.storage.getMetadata(file),
        })),
      );
    },
  }),
  remove: mutation({
    args: { file: id("_storage"), fail: z.boolean().default(false) },
    handler: async (ctx, { file, fail }) => {
      await ctx.storage.delete(file);
      if (fail) throw new Error("no");
    },
  }),
  shout: action({
    args: { file: id("_storage") },
    handler: async (ctx, { file }) => {
      const text = await (await ctx.storage.get(file))?.text();
      return await ctx.storage.store(new Blob([text?.toUpperCase() ?? ""], { type: "text/plain" }), {
        name: "loud.txt",
      });
    },
  }),
};

const modules = { schema: { default: schema }, photos };
const { api } = createApi<{ photos: typeof photos }>();

Deno.test("a file is uploaded, visible to queries, read through its URLs, and attributed to its uploader", async () => {
  await using server = await createTestServer({ modules });
  const ada = await server.asUser("Ada");
  const file = await server.upload(
    await ada.mutation(api.photos.uploadUrl),
    new File(["hello"], "hello.txt", { type: "text/plain" }),
  );
  using seen = ada.subscribe(api.photos.all);
  assert.deepEqual(await seen.next(), []);
  await ada.mutation(api.photos.add, { file, caption: "greeting" });
  const [photo] = seen.results.at(-1) ?? [];
  assert(photo !== undefined && photo.url !== null && photo.signed !== null);
  const { name, contentType, size, createdBy } = photo.about ?? {};
  assert.deepEqual([name, contentType, size, createdBy], ["hello.txt", "text/plain", 5, ada.userId]);

  for (const url of [photo.url, photo.signed, new URL(photo.url).pathname]) {
    const response = await server.fetch(url);
    assert.equal(response?.headers.get("content-type"), "text/plain");
    assert.equal(await response?.text(), "hello");
  }
  const part = await server.fetch(photo.url, { headers: { Range: "bytes=1-2" } });
  assert.deepEqual([part?.status, await part?.text()], [206, "el"]);
  await server.advance(61_000);
  assert.equal((await server.fetch(photo.signed))?.status, 403);
  assert.equal((await server.fetch(photo.url))?.status, 200);
});

Deno.test("an upload URL works once and for an hour of the test's clock; the refusal has its code", async () => {
  await using server = await createTestServer({ modules });
  const url = await server.mutation(api.photos.uploadUrl);
  const old = await server.mutation(api.photos.uploadUrl);
  await server.upload(url, new Blob(["a"]));
  const code = (wanted: string) => (error: unknown) =>
    error instanceof FunctionError && error.code === wanted;
  await assert.rejects(server.upload(url, new Blob(["a"])), code("upload_url_used"));
  await assert.rejects(server.upload(`${url}x`, new Blob(["a"])), code("invalid_upload_url"));
  await server.advance(3_600_001);
  await assert.rejects(server.upload(old, new Blob(["a"])), code("upload_url_expired"));
  const type = { contentType: "nonsense" };
  const fresh = await server.mutation(api.photos.uploadUrl);
  await assert.rejects(server.upload(fresh, new Blob(["a"]), type), code("invalid_content_type"));
});

Deno.test("an upload in pieces is one, too", async () => {
  await using server = await createTestServer({ modules });
  const send = async (path: string, init: RequestInit) => await server.fetch(path, init) ?? assert.fail();
  const tus = new TusClient(send);
  const url = await server.mutation(api.photos.uploadUrl);
  assert.match(resumable(url), /\/resumable\?/);
  const location = await tus.begin(url, 6, { "Upload-Metadata": metadata({ filename: "a.txt" }) });
  await tus.patch(location, { offset: 0, body: "abc" });
  const last = await tus.patch(location, { offset: 3, body: "def" });
  const id = last.headers.get("syncline-storage-id");
  assert.equal(await (await server.fetch(`/api/storage/${id}`))?.text(), "abcdef");
});

Deno.test("actions store and get contents", async () => {
  await using server = await createTestServer({ modules });
  const ada = await server.asUser("Ada");
  const file = await server.upload(await ada.mutation(api.photos.uploadUrl), new Blob(["quiet"]));
  const loud = await ada.action(api.photos.shout, { file });
  await ada.mutation(api.photos.add, { file: loud, caption: "loud" });
  const [photo] = await ada.query(api.photos.all);
  assert.deepEqual([photo?.about?.name, photo?.about?.createdBy], ["loud.txt", ada.userId]);
  assert.equal(await (await server.fetch(photo?.url ?? ""))?.text(), "QUIET");
});

Deno.test("a file is deleted by the commit, and not by a rollback", async () => {
  await using server = await createTestServer({ modules });
  const file = await server.upload(await server.mutation(api.photos.uploadUrl), new Blob(["x"]));
  await assert.rejects(server.mutation(api.photos.remove, { file, fail: true }), { message: "no" });
  assert.equal((await server.fetch(`/api/storage/${file}`))?.status, 200);
  await server.mutation(api.photos.remove, { file });
  assert.equal((await server.fetch(`/api/storage/${file}`))?.status, 404);
  await assert.rejects(server.mutation(api.photos.add, { file, caption: "x" }), /no such file/);
});

Deno.test("files of two servers are apart", async () => {
  await using one = await createTestServer({ modules });
  await using other = await createTestServer({ modules });
  const url = await one.mutation(api.photos.uploadUrl);
  const file = await one.upload(url, new Blob(["one"]));
  assert.equal((await other.fetch(`/api/storage/${file}`))?.status, 404);
});
