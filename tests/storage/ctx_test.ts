/** `ctx.storage` in queries, mutations and actions. */
import assert from "node:assert/strict";
import { fileApiLimits } from "../../mod/functions/limits.ts";
import { storageLimits } from "../../mod/storage/limits.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import { errorOf, startTestStorage } from "./support/test_storage.ts";

const DAY_MS = 86_400_000;

Deno.test("FS1 a deleted file is not available after the commit, and its contents are removed soon after", async () => {
  await using s = await startTestStorage();
  const [id, other] = [await s.upload("x"), await s.upload("y")];
  assert.equal(await (await s.request(`/api/storage/${id}`)).text(), "x");
  await s.call("files:remove", { id });
  assert.equal(await errorOf(await s.request(`/api/storage/${id}`)), "404 not_found");
  await s.service.sweep();
  assert.equal((await s.blobs()).length, 1);
  assert.equal(await (await s.request(`/api/storage/${other}`)).text(), "y");
  await assert.rejects(s.call("files:remove", { id }), /Cannot delete file/);
});

Deno.test("FS1 contents whose removal failed are removed later", async () => {
  let failing = true;
  await using s = await startTestStorage({
    wrapStore: (store) =>
      new Proxy(store, {
        get(target, name) {
          if (name === "remove" && failing) return () => Promise.reject(new Error("the disk is gone"));
          return Reflect.get(target, name).bind?.(target);
        },
      }),
  });
  const id = await s.upload("x");
  await s.call("files:remove", { id });
  await s.service.sweep();
  assert.equal((await s.blobs()).length, 1);
  assert.ok(s.logged.some((line) => line.includes("Cannot remove")), s.logged.join());
  failing = false;
  await s.service.sweep();
  assert.deepEqual(await s.blobs(), []);
});

Deno.test("FS2 a rolled back deletion deletes nothing", async () => {
  await using s = await startTestStorage();
  const id = await s.upload("x");
  await assert.rejects(s.call("files:removeAndFail", { id }), /no/);
  await s.service.sweep();
  assert.equal(await (await s.request(`/api/storage/${id}`)).text(), "x");
});

Deno.test("FS3 contents of deleted files are kept for as long as configured", async () => {
  await using s = await startTestStorage({ keepDeletedMs: DAY_MS });
  const id = await s.upload("x");
  await s.call("files:remove", { id });
  assert.equal(await errorOf(await s.request(`/api/storage/${id}`)), "404 not_found");
  s.clock.now += DAY_MS - 1;
  await s.service.sweep();
  assert.equal((await s.blobs()).length, 1);
  s.clock.now += 1;
  await s.service.sweep();
  assert.deepEqual(await s.blobs(), []);
});

Deno.test("FS4 queries return metadata of files, and null for other IDs", async () => {
  await using s = await startTestStorage();
  const id = await s.upload("x");
  assert.equal(await s.call("files:url", { id }), `/api/storage/${id}`);
  await s.call("files:remove", { id });
  for (const none of [id, "", "x", "../x", id.slice(0, -1)]) {
    assert.equal(await s.call("files:url", { id: none }), null);
    assert.equal(await s.call("files:signedUrl", { id: none, ttlSeconds: 1 }), null);
    assert.equal(await s.call("files:metadata", { id: none }), null);
  }
  await assert.rejects(s.call("files:url", { id: 5 }), /needs the id of a file/);
  for (const ttlSeconds of [0, -1, "1", fileApiLimits.signedUrlSecondsMax + 1]) {
    await assert.rejects(s.call("files:signedUrl", { id, ttlSeconds }), /needs ttlSeconds/);
  }
});

Deno.test("FS5 actions generate upload URLs, get contents and store them", async () => {
  await using s = await startTestStorage({ uploadBytesMax: 2_000_000 });
  const url = String(await s.call("files:actGenerate"));
  const contents = crypto.getRandomValues(new Uint8Array(60_000));
  const { storageId: id } = await (await s.post(url, contents, { type: "image/png" })).json();
  const identity = { principal: "admin:abc", userId: null, adminId: "abc", sessionId: null };
  const copy = String(await s.call("files:actCopy", { id, name: "a/copy.png" }, identity));
  const response = await s.request(`/api/storage/${copy}`);
  assert.deepEqual(await response.bytes(), contents);
  assert.equal(response.headers.get("content-type"), "image/png");
  const metadata = await s.call("files:metadata", { id: copy }) as Record<string, unknown>;
  assert.equal(metadata["name"], "copy.png");
  assert.equal(metadata["createdBy"], "abc");
});

Deno.test("FS5 contents longer than one message are transferred intact, and too large ones rejected", async () => {
  const size = 2 * fileApiLimits.actionChunkBytes + 1;
  await using s = await startTestStorage({ uploadBytesMax: size });
  const contents = new Uint8Array(size);
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(contents.subarray(at, at + 65_536));
  const id = await s.upload(contents);
  const copy = String(await s.call("files:actCopy", { id, name: "x" }));
  assert.deepEqual(await (await s.request(`/api/storage/${copy}`)).bytes(), contents);
  assert.equal((await s.blobs()).length, 2);
  await assert.rejects(s.call("files:actStore", { bytes: size + 1 }), /exceeds the limit/);
  await assert.rejects(s.call("files:actStore", { bytes: 1, contentType: "no type" }), /content type/);
  assert.equal((await s.blobs()).length, 2);
  assert.equal(await s.call("files:actCopy", { id: "none", name: "x" }), null);
});

Deno.test("FS5 the number of files stored by actions concurrently is limited", async () => {
  await using s = await startTestStorage();
  const begin = s.service.actions.get("_ctx/storage:beginFile");
  assert.ok(begin !== undefined);
  const outcomes = await Promise.all(
    Array.from(
      { length: storageLimits.actionUploadsMax + 40 },
      () => begin.run({ name: null, contentType: null }, anonymous),
    ),
  );
  assert.equal(outcomes.filter(({ ok }) => ok).length, storageLimits.actionUploadsMax);
});
