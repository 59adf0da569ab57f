/** Contract tests of blob stores, on a local folder and on a real S3 server. */
import assert from "node:assert/strict";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { join } from "node:path";
import { type BlobStore, openBlobs } from "../../mod/storage/mod.ts";
import { objectLimits } from "../../mod/kit/limits.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { TusClient } from "./support/tus.ts";
import { needs, swift } from "../support/services.ts";
import { SwiftServer } from "./support/swift_server.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";

const name = (digit: string) => digit.repeat(32);

async function put(
  store: BlobStore,
  blob: string,
  chunks: readonly Uint8Array<ArrayBuffer>[],
): Promise<void> {
  const writer = await store.create(blob);
  for (const chunk of chunks) await writer.write(chunk);
  await writer.commit();
}

async function bytesOf(store: BlobStore, blob: string, part: { start: number; end: number } | null = null) {
  const stream = await store.read(blob, part);
  return stream === null ? null : await new Response(stream).bytes();
}

async function names(store: BlobStore): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of store.list()) found.push(name);
  return [...new Set(found)].sort();
}

const text = (value: string) => new TextEncoder().encode(value);

/** Runs the same steps on each store. `open` opens the same location each time. */
async function contract(t: Deno.TestContext, open: () => Promise<BlobStore>): Promise<void> {
  await t.step("BS1 a committed blob is readable in full and in ranges", async () => {
    await using store = await open();
    await put(store, name("a"), [text("hello "), text("world")]);
    assert.deepEqual(await bytesOf(store, name("a")), text("hello world"));
    assert.deepEqual(await bytesOf(store, name("a"), { start: 2, end: 10 }), text("llo world"));
    await put(store, name("b"), []);
    assert.deepEqual(await bytesOf(store, name("b")), new Uint8Array(0));
    assert.equal(await bytesOf(store, name("f")), null);
    assert.deepEqual(await names(store), [name("a"), name("b")]);
  });

  await t.step("BS4 derivatives are stored with their blob and removed with it", async () => {
    await using store = await open();
    assert.equal(await store.readDerivative(name("a"), "1x1.cover"), null);
    await store.writeDerivative(name("a"), "1x1.cover", text("one"));
    await store.writeDerivative(name("a"), "1x1.cover", text("two"));
    await store.writeDerivative(name("a"), "2x2.cover", text("three"));
    assert.deepEqual(await store.readDerivative(name("a"), "1x1.cover"), text("two"));
    await store.remove(name("a"));
    assert.equal(await bytesOf(store, name("a")), null);
    assert.equal(await store.readDerivative(name("a"), "1x1.cover"), null);
    assert.equal(await store.readDerivative(name("a"), "2x2.cover"), null);
    await store.remove(name("a"));
    assert.deepEqual(await names(store), [name("b")]);
    await store.writeDerivative(name("a"), "1x1.cover", text("late"));
    assert.deepEqual(
      await names(store),
      [name("a"), name("b")],
      "derivatives without a blob are listed",
    );
  });

  await t.step("BS8 a file on disk is adopted as a blob, once", async () => {
    await using store = await open();
    await using tempFolder = new TempFolder();
    const dir = tempFolder.path;
    const path = join(dir, "file");
    const whole = text("finished");
    await Deno.writeFile(path, whole);
    await store.adopt(name("9"), path);
    assert.deepEqual([...Deno.readDirSync(dir)], []);
    await store.adopt(name("9"), path);
    assert.deepEqual(await bytesOf(store, name("9")), whole);
    await store.remove(name("9"));
  });

  await t.step("BS5 a listing contains the time of each blob", async () => {
    await using store = await open();
    for await (const { writtenAt } of store.list()) {
      assert.ok(Math.abs(Date.now() - writtenAt) < 300_000, String(writtenAt));
    }
  });
}

Deno.test("blobs in a folder", async (t) => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  await contract(t, () => openBlobs({ kind: "folder", path: join(dir, "storage") }));
});

Deno.test({
  ...needs(swift, "blobs in a bucket"),
  fn: async (t) => {
    await using server = await SwiftServer.start();
    const { endpoint, accessKeyId, secretAccessKey } = server;
    const client = new S3Client({
      endpoint,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey },
    });
    await client.send(new CreateBucketCommand({ Bucket: "blobs" }));
    const options = { bucket: "blobs", region: "us-east-1", endpoint, accessKeyId, secretAccessKey };
    await contract(t, () => openBlobs({ kind: "bucket", bucket: { ...options, prefix: "app/one/" } }));

    await t.step("BS6 a wrong key or bucket is reported when it is opened", async () => {
      await assert.rejects(
        openBlobs({ kind: "bucket", bucket: { ...options, prefix: "", secretAccessKey: "wrong" } }),
        /Cannot delete from "s3:\/\/blobs\/": SignatureDoesNotMatch/,
      );
      await assert.rejects(openBlobs({ kind: "bucket", bucket: { ...options, prefix: "", bucket: "none" } }));
    });

    await t.step("BS7 a server with its own permissions stores files in a bucket", async () => {
      await using dataFolder = new TempFolder();
      const dataDir = dataFolder.path;
      const flags = Object.entries({
        storage: "s3://blobs/server",
        "s3-endpoint": endpoint,
        "s3-access-key-id": accessKeyId,
        "s3-secret-access-key": secretAccessKey,
      }).flatMap(([flag, value]) => [`--${flag}`, value]);
      const functions = "tests/storage/functions";
      {
        await using syncline = await ServerProcess.start({ dataDir, functions, flags });
        const base = `http://127.0.0.1:${syncline.port}`;
        const url = await syncline.call("mutation", "files:generate");
        const contents = new Uint8Array(objectLimits.partBytes + 1).map((_, at) => at % 251);
        const uploaded = await fetch(base + url, { method: "POST", body: contents });
        const { storageId: id } = await uploaded.json();
        const whole = await fetch(`${base}/api/storage/${id}`);
        assert.deepEqual(await whole.bytes(), contents);
        const parts = await fetch(`${base}/api/storage/${id}`, { headers: { Range: "bytes=5-9,100-109" } });
        assert.equal(parts.status, 206);
        assert.equal((await parts.bytes()).length, Number(parts.headers.get("content-length")));
        const tus = new TusClient((path, init) => fetch(base + path, init));
        const begun = await syncline.call("mutation", "files:generate");
        const location = await tus.begin(String(begun), contents.length);
        await tus.patch(location, { offset: 0, body: contents.slice(0, 1_000) });
        const last = await tus.patch(location, { offset: 1_000, body: contents.slice(1_000) });
        const inPieces = last.headers.get("syncline-storage-id");
        assert.deepEqual(await (await fetch(`${base}/api/storage/${inPieces}`)).bytes(), contents);
        await syncline.call("mutation", "files:remove", { id: inPieces });
        await syncline.call("mutation", "files:remove", { id });
        assert.equal((await fetch(`${base}/api/storage/${id}`, { method: "HEAD" })).status, 404);
        await using store = await openBlobs({ kind: "bucket", bucket: { ...options, prefix: "server/" } });
        await until(async () => (await names(store)).length === 0, { everyMs: 50 });
      }
      assert.equal(
        (await Array.fromAsync(Deno.readDir(dataDir))).some(({ name }) => name === "storage"),
        false,
      );
    });
    client.destroy();
  },
});
