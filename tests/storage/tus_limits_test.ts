/** Limits of resumable uploads, and other clients. */
import assert from "node:assert/strict";
import { resumableLimits } from "../../mod/storage/limits.ts";
import { errorOf, startTestStorage } from "./support/test_storage.ts";
import { chunkType, clientOf, offsetOf, spooled, TusClient } from "./support/tus.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

Deno.test("RU12 requests per client and the disk space of all unfinished uploads are limited", async () => {
  await using storage = await startTestStorage({ uploadBytesMax: 10 });
  const tus = (from: string) => new TusClient(storage.request, { "X-Test-Client": from });
  const url = await storage.uploadUrl();
  const location = await tus("a").begin(url, 10);
  const answers = [];
  for (let count = 0; count <= resumableLimits.requestsPerClient.burst; count++) {
    answers.push((await tus("b").head(location)).status);
  }
  assert.deepEqual([...new Set(answers)], [200, 429]);
  const refused = await tus("b").head(location);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  const creations = [];
  for (let count = 0; count < 61; count++) {
    creations.push((await tus("c").create(url, { "Upload-Length": "10" })).status);
  }
  assert.deepEqual([creations[0], creations[59], creations[60]], [201, 201, 429]);

  const wrong = { "Upload-Checksum": `sha1 ${"A".repeat(27)}=` };
  for (let count = 0; count < 150; count++) {
    const answer = await tus("g").patch(location, { offset: 0, body: bytesOf("123456789"), headers: wrong });
    assert.equal(await errorOf(answer), "460 checksum_mismatch", "what was refused takes no room");
  }
  const full: string[] = [];
  for (let count = 0; count < 112; count++) {
    const begun = await tus(`d${count % 9}`).begin(await storage.uploadUrl(), 10);
    const answer = await tus(`d${count % 9}`).patch(begun, { offset: 0, body: bytesOf("123456789") });
    if (answer.status === 204) continue;
    assert.equal(await errorOf(answer), "503 overloaded");
    full.push(begun);
    if (full.length === 1) break;
  }
  const [waiting = assert.fail("there was room for everything")] = full;
  assert.equal(await offsetOf(tus("e"), waiting), "0");
  assert.equal(spooled(storage).length, 2 * 113);
  storage.clock.now += resumableLimits.keptMs + 1;
  await storage.service.sweep();
  assert.deepEqual(spooled(storage), []);
  const freed = await tus("f").begin(await storage.uploadUrl(), 10);
  assert.equal((await tus("f").patch(freed, { offset: 0, body: bytesOf("1234567890") })).status, 204);
});

Deno.test("RU12 requests waiting for one upload are limited and get the same response", async () => {
  const adopting = Promise.withResolvers<void>();
  const blocked = Promise.withResolvers<void>();
  await using storage = await startTestStorage({
    wrapStore: (store) =>
      new Proxy(store, {
        get(target, property) {
          const own: unknown = Reflect.get(target, property);
          if (typeof own !== "function") return own;
          if (property !== "adopt") return own.bind(target);
          return async (name: string, path: string) => {
            adopting.resolve();
            await blocked.promise;
            await target.adopt(name, path);
          };
        },
      }),
  });
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 3);
  const last = tus.patch(location, { offset: 0, body: bytesOf("abc") });
  await adopting.promise;
  const waiting = Array.from({ length: resumableLimits.waitingMax }, () => tus.head(location));
  assert.equal((await tus.head(location)).status, 409);
  blocked.resolve();
  const answers = await Promise.all([last, ...waiting]);
  const [id, ...others] = new Set(answers.map(({ headers }) => headers.get("syncline-storage-id")));
  assert.ok(id);
  assert.deepEqual(others, []);
  assert.equal((await storage.rows("_storage")).length, 1);
});

Deno.test("RU13 every response may be read by pages of other origins and states the server's capabilities", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 3);
  const options = await storage.request("/api/storage/resumable", { method: "OPTIONS" });
  assert.equal(options.status, 204);
  assert.equal(options.headers.get("tus-version"), "1.0.0");
  assert.match(options.headers.get("tus-extension") ?? "", /creation,.*checksum/);
  assert.equal(options.headers.get("tus-max-size"), "1000000");
  const answers = [
    options,
    await storage.request(location, { method: "OPTIONS" }),
    await tus.head(location),
    await tus.patch(location, { offset: 9, body: "" }),
    await storage.request(location, { method: "HEAD" }),
    await tus.remove(location),
  ];
  for (const { status, headers } of answers) {
    assert.equal(headers.get("tus-resumable"), "1.0.0", String(status));
    assert.equal(headers.get("access-control-allow-origin"), "*");
    assert.match(
      headers.get("access-control-expose-headers") ?? "",
      /Location.*Syncline-Storage-Id.*Upload-Of/,
    );
    assert.equal(headers.get("cache-control"), "no-store");
    assert.equal(headers.get("x-content-type-options"), "nosniff");
  }
  assert.equal(answers[4]?.status, 412);
  assert.equal(answers[4]?.headers.get("tus-version"), "1.0.0");
});

Deno.test("RU13 clients limited to POST send the method in a header", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 3);
  const answer = await storage.request(location, {
    method: "POST",
    body: bytesOf("abc"),
    headers: {
      "Tus-Resumable": "1.0.0",
      "X-HTTP-Method-Override": "PATCH",
      "Upload-Offset": "0",
      "Content-Type": chunkType,
    },
  });
  assert.equal(answer.status, 204);
  assert.ok(answer.headers.get("syncline-storage-id"));
});

Deno.test("RU14 the uploader is stored, and the file is deleted like any other", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const identity = { principal: "user:ada", userId: "ada", adminId: null, sessionId: "s" };
  const location = await tus.begin(await storage.uploadUrl(identity), 3);
  const last = await tus.patch(location, { offset: 0, body: bytesOf("abc") });
  assert.equal((await storage.rows("_storage"))[0]?.createdBy, "ada");
  await storage.call("files:remove", { id: last.headers.get("syncline-storage-id") });
  await storage.service.sweep();
  assert.deepEqual(await storage.blobs(), []);
  assert.equal(await offsetOf(tus, location), "404");
});
