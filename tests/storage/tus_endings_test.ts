/** How resumable uploads end, also when a response, a server or the time is lost. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { errorOf, startTestStorage, type TestStorage } from "./support/test_storage.ts";
import { chunkType, clientOf, metadata, offsetOf, spooled, TusClient } from "./support/tus.ts";
import { TempFolder } from "../support/temp_folder.ts";

const HOUR_MS = 3_600_000;
const bytesOf = (text: string) => new TextEncoder().encode(text);

Deno.test("RU9 a canceled upload is removed and its URL works again; a finished file cannot be canceled", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const url = await storage.uploadUrl();
  const location = await tus.begin(url, 6);
  await tus.patch(location, { offset: 0, body: bytesOf("abc") });
  assert.equal((await tus.remove(location)).status, 204);
  assert.deepEqual(spooled(storage), []);
  assert.equal(await errorOf(await tus.remove(location)), "404 not_found");
  assert.equal(
    await errorOf(await tus.patch(location, { offset: 3, body: bytesOf("def") })),
    "404 not_found",
  );
  assert.equal((await storage.post(url, "whole")).status, 200);
  assert.equal(await errorOf(await tus.remove(location)), "403 upload_url_used");
});

Deno.test("RU10 an upload can be resumed after its URL expired, but not forever; the cleanup removes it", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const [slow, never] = [await storage.uploadUrl(), await storage.uploadUrl()];
  const [location, abandoned] = [await tus.begin(slow, 6), await tus.begin(never, 6)];
  await tus.patch(abandoned, { offset: 0, body: bytesOf("abc") });
  storage.clock.now += 20 * HOUR_MS;
  await storage.service.sweep();
  assert.equal(
    (await tus.patch(location, { offset: 0, body: bytesOf("abcdef") })).status,
    204,
  );
  storage.clock.now += 4 * HOUR_MS + 1;
  assert.equal(await offsetOf(tus, abandoned), "410");
  const late = await tus.patch(abandoned, { offset: 3, body: bytesOf("def") });
  assert.equal(await errorOf(late), "410 upload_expired");
  assert.equal(spooled(storage).length, 2);
  await storage.service.sweep();
  assert.deepEqual(spooled(storage), []);
  storage.clock.now += HOUR_MS;
  assert.equal(await offsetOf(tus, abandoned), "410");
  assert.equal((await storage.rows("_storage")).length, 1);
});

Deno.test("RU11 repeating a creation whose response was lost returns the progress", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const url = await storage.uploadUrl();
  const headers = { "Upload-Length": "6", "Upload-Metadata": metadata({ filename: "a" }) };
  const first = await tus.create(url, headers);
  const location = first.headers.get("location") ?? "";
  await tus.patch(location, { offset: 0, body: bytesOf("abc") });
  const again = await tus.create(url, { ...headers, "Content-Type": chunkType }, bytesOf("abcdef"));
  assert.deepEqual(
    [again.status, again.headers.get("location"), again.headers.get("upload-offset")],
    [201, location, "3"],
  );
});

Deno.test("RU11 a failed last step is completed by the next request", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  let failures = 0;
  let location = "";
  const tusOf = (storage: TestStorage) => new TusClient(storage.request);
  {
    await using storage = await startTestStorage({
      dir,
      wrapStore: (store) =>
        new Proxy(store, {
          get(target, property) {
            const own: unknown = Reflect.get(target, property);
            if (typeof own !== "function") return own;
            if (property !== "adopt") return own.bind(target);
            return async (name: string, path: string) => {
              // Once before the bytes are adopted, once after.
              if (failures++ > 0) await target.adopt(name, path);
              if (failures < 3) throw new Error("the disk is gone");
            };
          },
        }),
    });
    const tus = tusOf(storage);
    location = await tus.begin(await storage.uploadUrl(), 3);
    assert.equal(
      await errorOf(await tus.patch(location, { offset: 0, body: bytesOf("abc") })),
      "500 internal",
    );
    assert.equal(await offsetOf(tus, location), "500");
    storage.clock.now += 2 * HOUR_MS;
    await storage.service.sweep();
    assert.equal((await storage.blobs()).length, 1, "the sweep of orphans leaves it alone");
  }
  await using storage = await startTestStorage({ dir });
  const tus = tusOf(storage);
  const id = (await tus.head(location)).headers.get("syncline-storage-id");
  assert.equal(await (await storage.request(`/api/storage/${id}`)).text(), "abc");
  assert.equal((await storage.rows("_storage")).length, 1);
  assert.deepEqual(spooled(storage), []);
});

Deno.test("RU11 finishing an upload twice returns the same file", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  const folder = join(dir, "storage", "resumable");
  const kept = new Map<string, Uint8Array>();
  let failures = 0;
  let [location, id] = ["", ""];
  {
    await using storage = await startTestStorage({
      dir,
      wrapStore: (store) =>
        new Proxy(store, {
          get(target, property) {
            const own: unknown = Reflect.get(target, property);
            if (property === "adopt" && failures++ === 0) return () => Promise.reject(new Error("later"));
            return typeof own === "function" ? own.bind(target) : own;
          },
        }),
    });
    const tus = clientOf(storage);
    location = await tus.begin(await storage.uploadUrl(), 3);
    assert.equal((await tus.patch(location, { offset: 0, body: bytesOf("abc") })).status, 500);
    for (const name of spooled(storage)) kept.set(name, await Deno.readFile(join(folder, name)));
    id = (await tus.head(location)).headers.get("syncline-storage-id") ?? "";
    assert.notEqual(id, "");
  }
  // As if the server was killed between the commit and the removal of the spool files.
  for (const [name, bytes] of kept) await Deno.writeFile(join(folder, name), bytes);
  await using storage = await startTestStorage({ dir });
  const tus = clientOf(storage);
  assert.equal((await tus.head(location)).headers.get("syncline-storage-id"), id);
  assert.equal((await storage.rows("_storage")).length, 1);
  assert.equal(await (await storage.request(`/api/storage/${id}`)).text(), "abc");
  assert.deepEqual(spooled(storage), []);
});

Deno.test("RU11 an upload whose response was lost is reported as used if its file was deleted", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  const folder = join(dir, "storage", "resumable");
  let [location, url, record] = ["", "", ""];
  {
    await using storage = await startTestStorage({
      dir,
      wrapStore: (store) =>
        new Proxy(store, {
          get(target, property) {
            const own: unknown = Reflect.get(target, property);
            if (typeof own !== "function") return own;
            if (property !== "adopt") return own.bind(target);
            return async (name: string, path: string) => {
              await target.adopt(name, path);
              record = await Deno.readTextFile(path.replace(".part", ".json"));
            };
          },
        }),
    });
    const tus = clientOf(storage);
    url = await storage.uploadUrl();
    location = await tus.begin(url, 3);
    const last = await tus.patch(location, { offset: 0, body: bytesOf("abc") });
    await storage.call("files:remove", { id: last.headers.get("syncline-storage-id") });
    await storage.service.sweep();
    assert.deepEqual(await storage.blobs(), []);
  }
  await Deno.writeTextFile(join(folder, `${JSON.parse(record).token}.json`), record);
  await using storage = await startTestStorage({ dir });
  const tus = clientOf(storage);
  assert.equal(await offsetOf(tus, location), "403");
  assert.deepEqual(spooled(storage), []);
  assert.equal(await errorOf(await storage.post(url, "x")), "403 upload_url_used");
});
