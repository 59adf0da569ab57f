/** Files in a bucket with replication: a follower reads them and removes none, and a point-in-time restore keeps them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { bearerOf, startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";
import { FakeBucket } from "../scheduled/fake_bucket.ts";
import { replicationTo, shipped } from "./replicating.ts";

const functions = {
  "files.ts": `
import { untypedMutation } from "syncline/server";
import { z } from "zod";
export const uploadUrl = untypedMutation({ args: {}, handler: (ctx) => ctx.storage.generateUploadUrl() });
export const remove = untypedMutation({ args: { id: z.string() }, handler: (ctx, { id }) => ctx.storage.delete(id) });
`,
};

async function mutate(
  server: TestServer,
  name: string,
  args: object,
): Promise<{ value: unknown; ts: number }> {
  const { body } = await server.post("/api/mutation", { path: `files:${name}`, args });
  assert.equal(body.status, "success", JSON.stringify(body));
  return body;
}

async function upload(server: TestServer, text: string): Promise<string> {
  const { value } = await mutate(server, "uploadUrl", {});
  const response = await fetch(new URL(String(value), server.url), { method: "POST", body: text });
  return (await response.json()).storageId;
}

const read = async (server: TestServer, id: string) => {
  const response = await fetch(`${server.url}/api/storage/${id}`);
  return response.status === 200 ? await response.text() : (await response.body?.cancel(), null);
};

Deno.test("[RP17] [RP18] [PT5] a follower reads files in a bucket and removes none, and a point-in-time restore keeps them", async () => {
  await using folder = new TempFolder();
  await using bucket = new FakeBucket();
  const from = { kind: "folder", path: folder.at("replica") } as const;
  const storage = {
    s3: bucket.location("files/"),
    uploadBytesMax: 1e6,
    privateReads: false,
    keepDeletedMs: 7 * 86_400_000,
    thumbnailSizes: null,
  };
  const replication = replicationTo(from.path);
  await using leader = await startTestServer({ functions, config: { storage, replication } });
  const bearer = await bearerOf(leader);
  await shipped(leader, bearer, { what: "the first snapshot" });
  const id = await upload(leader, "one");
  const { ts } = await mutate(leader, "uploadUrl", {});
  await shipped(leader, bearer, { what: "the file" });

  // Part of an unfinished upload to the other server.
  bucket.uploads.set("begun", { key: "files/blobs/00", parts: [] });
  {
    await using follower = await startTestServer({
      functions,
      // Without a retention time, so that it would remove deleted files immediately.
      config: {
        storage: { ...storage, keepDeletedMs: 0 },
        follow: { from, everyMs: 20, promote: false },
        dataDir: join(folder.path, "follower"),
      },
    });
    assert.ok(bucket.uploads.has("begun"), "what is being uploaded is left alone");
    await until(async () => await read(follower, id) === "one", { what: "the follower has the file" });
    await mutate(leader, "remove", { id });
    await until(async () => await read(follower, id) === null, {
      what: "the follower knows of the deletion",
    });
  }
  bucket.uploads.clear();
  const later = await upload(leader, "two");
  await shipped(leader, bearer, { what: "the deletion" });
  const objects = [...bucket.objects.keys()].sort();
  assert.equal(objects.length, 2, String(objects));

  const back = await leader.post("/api/admin/restore/point-in-time", { toTs: ts }, { bearer });
  assert.equal(back.status, 200, JSON.stringify(back.body));
  await leader.restart();
  assert.equal(await read(leader, id), "one");
  assert.equal(await read(leader, later), null);
  assert.deepEqual([...bucket.objects.keys()].sort(), objects);
});
