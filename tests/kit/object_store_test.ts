/** Contract tests of object stores, on a local folder and on a real S3 server. */
import assert from "node:assert/strict";
import { CreateBucketCommand, ListMultipartUploadsCommand, S3Client } from "@aws-sdk/client-s3";
import { objectLimits } from "../../mod/kit/limits.ts";
import { FolderStore } from "../../mod/kit/locations/folder_store.ts";
import {
  LocationError,
  type ObjectLocation,
  type ObjectReader,
  type ObjectStore,
  readObject,
  type StoreOptions,
} from "../../mod/kit/locations/object_store.ts";
import { openStore } from "../../mod/kit/locations/open_store.ts";
import { SwiftServer } from "../storage/support/swift_server.ts";
import { needs, swift } from "../support/services.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = async (store: ObjectReader, name: string) => {
  const bytes = await readObject(store, name, 1_000);
  return bytes === null ? null : new TextDecoder().decode(bytes);
};
const names = async (store: ObjectReader, prefix: string) =>
  (await Array.fromAsync(store.list(prefix))).map(({ name, size }) => `${name} ${size}`).sort();
const hasFault = (fault: LocationError["fault"]) => (error: unknown) =>
  error instanceof LocationError && error.fault === fault;

/**
 * Runs the same steps on each store. `open` opens the same, initially empty location each time. `uploadBegun` resolves when
 * the location has an unfinished upload.
 */
async function contract(
  t: Deno.TestContext,
  open: (options?: StoreOptions) => Promise<ObjectStore>,
  uploadBegun: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  await using temp = new TempFolder();

  await t.step("[OS1] an object is read in full and in ranges, listed by prefix and deleted", async () => {
    await using store = await open({ make: true });
    await store.check();
    assert.deepEqual(await names(store, ""), [], "the check leaves nothing behind");
    assert.equal(await store.get("a/b.json"), null);
    assert.equal(await store.get("a/b.json", { start: 0, end: 1 }), null);
    assert.equal(await store.head("a/b.json"), null);
    assert.equal(await store.put("a/b.json", bytesOf("replaced")), true);
    assert.equal(await store.put("a/b.json", bytesOf("hello world")), true);
    await store.put("a/c/empty", new Uint8Array(0));
    await store.put("a-b", bytesOf("x"), { volatile: true });
    await store.put("ä %+?&.json", bytesOf("odd"));
    assert.equal(await textOf(store, "a/b.json"), "hello world");
    assert.equal(await textOf(store, "a/c/empty"), "");
    assert.equal(await textOf(store, "ä %+?&.json"), "odd");
    for (const [start, end, text] of [[6, 6, "w"], [2, 10, "llo world"]] as const) {
      const range = await store.get("a/b.json", { start, end });
      assert.equal(await new Response(range).text(), text);
    }
    const head = await store.head("a/b.json");
    assert.equal(head?.size, 11);
    assert.ok(Math.abs(Date.now() - (head?.writtenAt ?? 0)) < 300_000);
    assert.deepEqual(await names(store, "a/"), ["a/b.json 11", "a/c/empty 0"]);
    assert.deepEqual(await names(store, "a"), ["a-b 1", "a/b.json 11", "a/c/empty 0"]);
    assert.deepEqual(await names(store, "a/c/e"), ["a/c/empty 0"]);
    assert.deepEqual(await names(store, "none/"), []);
    await assert.rejects(readObject(store, "a/b.json", 10), hasFault("target"));
    await store.delete("a/b.json", "a/b.json", "none", "ä %+?&.json");
    assert.deepEqual(await names(store, ""), ["a-b 1", "a/c/empty 0"]);
    await store.deleteFolder("a");
    await store.deleteFolder("a");
    assert.deepEqual(await names(store, ""), ["a-b 1"]);
    await store.put("a/c/again", bytesOf("y"));
    await store.delete("a-b", "a/c/again");
  });

  await t.step(
    "[OS2] [BS2] a large object is complete once it is committed, and chunks can be reused",
    async () => {
      await using store = await open();
      const size = 2 * objectLimits.partBytes + 12_345;
      const whole = new Uint8Array(size).map((_, at) => (at * 31) >> 3);
      const writer = await store.create("b/large");
      const chunk = new Uint8Array(1_000_003);
      for (let at = 0; at < size; at += chunk.length) {
        const piece = chunk.subarray(0, Math.min(chunk.length, size - at));
        piece.set(whole.subarray(at, at + piece.length));
        await writer.write(piece);
        piece.fill(0);
      }
      assert.equal(await store.head("b/large"), null, "nothing before it is committed");
      await writer.commit();
      assert.deepEqual(await readObject(store, "b/large", size), whole);
      const [start, end] = [objectLimits.partBytes - 5, objectLimits.partBytes + 5];
      const range = await store.get("b/large", { start, end });
      assert.deepEqual(await new Response(range).bytes(), whole.slice(start, end + 1));
      await (await store.create("b/empty")).commit();
      assert.equal(await textOf(store, "b/empty"), "");
      await store.deleteFolder("b");
    },
  );

  await t.step("[OS3] [BS3] aborted and abandoned objects leave nothing behind", async () => {
    await using store = await open();
    for (const size of [0, 10, objectLimits.partBytes + 1]) {
      const writer = await store.create("c/aborted");
      await writer.write(new Uint8Array(size));
      await writer.abort();
      assert.equal(await store.head("c/aborted"), null);
    }
    const left = await store.create("c/abandoned");
    await left.write(new Uint8Array(objectLimits.partBytes + 1));
    await uploadBegun();
    await using again = await open();
    assert.deepEqual(await names(again, ""), []);
    await again.removeUnfinished("c/");
    await assert.rejects(async () => {
      await left.write(new Uint8Array(objectLimits.partBytes + 1));
      await left.commit();
    });
    await left.abort();
    assert.deepEqual(await names(again, ""), []);
  });

  await t.step("[OS4] files are copied or moved, and an interrupted move is repeated", async () => {
    await using store = await open();
    const large = new Uint8Array(objectLimits.partBytes + 12_345).map((_, at) => (at * 17) >> 2);
    await Deno.writeFile(temp.at("large"), large);
    await store.putFile("d/copied", temp.at("large"));
    await store.putFile("d/moved", temp.at("large"), { move: true });
    await assert.rejects(Deno.stat(temp.at("large")), Deno.errors.NotFound);
    await store.putFile("d/moved", temp.at("large"), { move: true });
    for (const name of ["d/copied", "d/moved"]) {
      assert.deepEqual(await readObject(store, name, large.length), large);
    }
    await assert.rejects(store.putFile("d/none", temp.at("none")));
    await assert.rejects(store.putFile("d/none", temp.at("none"), { move: true }));
    assert.equal((await names(store, "")).length, 2);
    await store.deleteFolder("d");
  });

  await t.step("[OS5] of several conditional writes at most one succeeds", async () => {
    await using store = await open();
    assert.equal(await store.put("e/1", bytesOf("first"), { ifAbsent: true }), true);
    assert.equal(await store.put("e/1", bytesOf("second"), { ifAbsent: true }), false);
    assert.equal(await textOf(store, "e/1"), "first");
    const tries = ["one", "two", "three"].map((text) => store.put("e/2", bytesOf(text), { ifAbsent: true }));
    assert.ok((await Promise.all(tries)).filter(Boolean).length <= 1);
    await store.deleteFolder("e");
    assert.deepEqual(await names(store, ""), []);
  });

  await t.step("[OS6] aborting the signal ends reads and writes", async () => {
    const stopping = new AbortController();
    await using store = await open({ signal: stopping.signal });
    await store.put("f", new Uint8Array(1_000));
    stopping.abort();
    await assert.rejects(store.get("f"), { name: "AbortError" });
    await assert.rejects(store.put("g", bytesOf("g")), { name: "AbortError" });
    await using again = await open();
    await again.delete("f");
    assert.deepEqual(await names(again, ""), []);
  });
}

Deno.test("objects in a folder", async (t) => {
  await using folder = new TempFolder();
  const path = folder.at("made/for/objects");
  const location: ObjectLocation = { kind: "folder", path };
  await assert.rejects(openStore(location), hasFault("away"));
  await contract(t, (options) => openStore(location, options));

  await t.step("only the user of the server can read files and folders", async () => {
    await using store = await openStore(location);
    await store.put("one/two", bytesOf("x"));
    const modeOf = (name: string) => (Deno.statSync(`${path}/${name}`).mode ?? 0) & 0o777;
    assert.deepEqual(["", "one", "one/two"].map(modeOf), [0o700, 0o700, 0o600]);
    await store.deleteFolder("one");
  });

  await t.step("a missing folder is reported, and not created again on the disk below", async () => {
    await using store = await openStore(location);
    await Deno.rename(path, `${path}-unmounted`);
    for (
      const operation of [
        () => store.put("a/b", bytesOf("x")),
        () => store.get("a/b"),
        () => store.head("a/b"),
        () => store.delete("a/b"),
        () => store.check(),
        () => names(store, ""),
        () => store.create("a/b"),
        () => store.removeUnfinished(""),
      ]
    ) await assert.rejects(operation(), /Folder ".*" does not exist\. Mount its disk/);
    assert.throws(() => Deno.statSync(path), Deno.errors.NotFound);
    await Deno.writeTextFile(path, "a file");
    await assert.rejects(store.check(), hasFault("away"));
    await Deno.remove(path);
    await Deno.rename(`${path}-unmounted`, path);
  });

  await t.step("a file from another disk is copied, and an aborted copy leaves nothing behind", async () => {
    const stopping = new AbortController();
    const rename = () =>
      Promise.reject(Object.assign(new Error("Invalid cross-device link"), { code: "EXDEV" }));
    await using store = await FolderStore.open(path, { rename, signal: stopping.signal });
    await Deno.writeFile(folder.at("moved"), bytesOf("from another disk"));
    await store.putFile("moved", folder.at("moved"), { move: true });
    assert.equal(await textOf(store, "moved"), "from another disk");
    assert.throws(() => Deno.statSync(folder.at("moved")), Deno.errors.NotFound);
    await Deno.writeFile(folder.at("large"), new Uint8Array(20_000_000));
    const put = store.putFile("large", folder.at("large"), { move: true });
    stopping.abort();
    await assert.rejects(put);
    assert.deepEqual([...Deno.readDirSync(path)].map(({ name }) => name).sort(), ["a", "moved"]);
    await Deno.remove(`${path}/moved`);
  });

  await t.step(
    "links and temporary files are no objects; temporary files are removed when they are old",
    async () => {
      await using store = await openStore(location);
      const half = (name: string) => `.${name}0123456789ab.partial`;
      await store.deleteFolder("a");
      await store.put("a/b", bytesOf("b"));
      await Deno.symlink("b", `${path}/a/link`);
      await Deno.mkdir(`${path}/a/folder`);
      for (const name of [half(""), `a/${half("b.")}`, `a/.b.0123456789ab.syncline-partial`]) {
        await Deno.writeTextFile(`${path}/${name}`, "half");
        await Deno.utime(`${path}/${name}`, 0, 0);
      }
      await Deno.writeTextFile(`${path}/${half("new")}`, "half");
      assert.deepEqual(await names(store, ""), ["a/b 1"]);
      await store.removeUnfinished("", { before: Date.now() - 60_000 });
      const left = (name: string) => [...Deno.readDirSync(`${path}/${name}`)].map(({ name }) => name).sort();
      assert.deepEqual([left(""), left("a")], [[half("new"), "a"], ["b", "folder", "link"]]);
    },
  );
});

Deno.test({
  ...needs(swift, "objects in a bucket"),
  fn: async (t) => {
    await using server = await SwiftServer.start();
    const { endpoint, accessKeyId, secretAccessKey } = server;
    const client = new S3Client({
      endpoint,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey },
    });
    await client.send(new CreateBucketCommand({ Bucket: "objects" }));
    const place = {
      bucket: "objects",
      region: "us-east-1",
      endpoint,
      accessKeyId,
      secretAccessKey,
      prefix: "app/one/",
    };
    const unfinished = async () =>
      (await client.send(new ListMultipartUploadsCommand({ Bucket: "objects" }))).Uploads?.length ?? 0;
    const uploadBegun = () => until(async () => await unfinished() === 1);
    await contract(t, (options) => openStore({ kind: "bucket", bucket: place }, options), uploadBegun);

    await t.step("abandoned uploads below the prefix are aborted", async () => {
      await using store = await openStore({ kind: "bucket", bucket: place });
      const left = await store.create("d");
      for (let part = 0; part < 3; part++) await left.write(new Uint8Array(objectLimits.partBytes));
      await uploadBegun();
      await using other = await openStore({ kind: "bucket", bucket: { ...place, prefix: "app/two/" } });
      await other.removeUnfinished("");
      assert.equal(await unfinished(), 1, "those of another prefix belong to another server");
      await store.removeUnfinished("", { before: Date.now() - 3_600_000 });
      assert.equal(await unfinished(), 1, "it is new");
      await store.removeUnfinished("");
      assert.equal(await unfinished(), 0);
      await left.abort();
    });

    await t.step("a wrong key or bucket is refused", async () => {
      for (const wrong of [{ secretAccessKey: "wrong" }, { bucket: "none" }]) {
        await using store = await openStore({ kind: "bucket", bucket: { ...place, ...wrong } });
        await assert.rejects(store.check(), hasFault("refused"));
      }
    });
    client.destroy();
  },
});
