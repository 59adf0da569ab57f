/** Uploads in pieces: the tus protocol in one process, with clock and folder in the test's hands. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { resumableLimits } from "../../mod/limits.ts";
import { errorOf, startTestStorage, type TestStorage } from "./support/test_storage.ts";
import { chunkType, metadata, resumable, TusClient } from "./support/tus.ts";

const HOUR_MS = 3_600_000;
const bytesOf = (text: string) => new TextEncoder().encode(text);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

const clientOf = (storage: TestStorage) => new TusClient(storage.request);

/** Names in the folder of unfinished uploads. */
function spooled(storage: TestStorage): string[] {
  return [...Deno.readDirSync(join(storage.dir, "storage", "resumable"))].map(({ name }) => name);
}

async function offsetOf(tus: TusClient, location: string): Promise<string | null> {
  const response = await tus.head(location);
  return response.status === 200 ? response.headers.get("upload-offset") : await String(response.status);
}

Deno.test("RU1 pieces become a file like that of a single upload, named by the last answer", async () => {
  await using storage = await startTestStorage({ baseUrl: "https://files.example.com" });
  const tus = clientOf(storage);
  const contents = bytesOf("hello world");
  const about = metadata({ filename: "dir/größe.txt", filetype: "text/plain", other: "x" });
  const created = await tus.create(await storage.uploadUrl(), {
    "Upload-Length": "11",
    "Upload-Metadata": about,
  });
  const location = created.headers.get("location") ?? "";
  assert.equal(created.status, 201);
  assert.match(location, /^https:\/\/files\.example\.com\/api\/storage\/resumable\/[\w.-]+$/);
  assert.equal(created.headers.get("upload-offset"), "0");
  assert.equal(
    Date.parse(created.headers.get("upload-expires") ?? ""),
    storage.clock.now + resumableLimits.keptMs,
  );
  const path = new URL(location).pathname;
  const half = await tus.patch(path, { offset: 0, body: contents.slice(0, 5) });
  assert.deepEqual([half.status, half.headers.get("upload-offset")], [204, "5"]);
  assert.equal(half.headers.get("syncline-storage-id"), null);
  const head = await tus.head(path);
  assert.equal(head.headers.get("upload-length"), "11");
  assert.equal(head.headers.get("upload-metadata"), about);
  assert.deepEqual(await storage.rows("_storage"), []);

  const last = await tus.patch(path, { offset: 5, body: contents.slice(5) });
  const id = last.headers.get("syncline-storage-id") ?? "";
  assert.deepEqual([last.status, last.headers.get("upload-offset")], [204, "11"]);
  const [file] = await storage.rows("_storage");
  assert.deepEqual(
    [file?._id, file?.name, file?.contentType, file?.size, file?.sha256],
    [id, "größe.txt", "text/plain", 11, sha256(contents)],
  );
  const read = await storage.request(`/api/storage/${id}`);
  assert.deepEqual(await read.bytes(), contents);
  assert.deepEqual(spooled(storage), []);
  for (let again = 0; again < 2; again++) {
    const finished = await tus.head(path);
    assert.deepEqual(
      ["upload-offset", "upload-length", "syncline-storage-id"].map((name) => finished.headers.get(name)),
      ["11", "11", id],
    );
  }
});

Deno.test("RU1 an empty file is one at once, and the first bytes may come with the beginning", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const empty = await tus.create(await storage.uploadUrl(), { "Upload-Length": "0" });
  assert.equal(empty.status, 201);
  assert.ok(empty.headers.get("syncline-storage-id"));
  const begun = await tus.create(
    await storage.uploadUrl(),
    { "Upload-Length": "6", "Content-Type": chunkType },
    bytesOf("abc"),
  );
  assert.deepEqual([begun.status, begun.headers.get("upload-offset")], [201, "3"]);
  const rest = await tus.patch(begun.headers.get("location") ?? "", { offset: 3, body: bytesOf("def") });
  const id = rest.headers.get("syncline-storage-id");
  assert.equal(await (await storage.request(`/api/storage/${id}`)).text(), "abcdef");
});

Deno.test("RU2 what arrived before a body broke off, stood still or lied is kept, and gone on with", async () => {
  await using storage = await startTestStorage({ uploadStallMs: 30 });
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 9);
  const broken = new ReadableStream({
    start(controller) {
      controller.enqueue(bytesOf("abc"));
    },
    pull(controller) {
      controller.error(new Error("gone"));
    },
  });
  assert.equal(await errorOf(await tus.patch(location, { offset: 0, body: broken })), "400 upload_failed");
  assert.equal(await offsetOf(tus, location), "3");
  const silent = new ReadableStream({ start: (controller) => controller.enqueue(bytesOf("de")) });
  assert.equal(await errorOf(await tus.patch(location, { offset: 3, body: silent })), "400 upload_failed");
  assert.equal(await offsetOf(tus, location), "5");
  const short = { "Content-Length": "3" };
  const lie = await tus.patch(location, { offset: 5, body: bytesOf("f"), headers: short });
  assert.equal(await errorOf(lie), "400 upload_failed");
  const rest = await tus.patch(location, { offset: 6, body: bytesOf("ghi") });
  const id = rest.headers.get("syncline-storage-id");
  assert.equal(await (await storage.request(`/api/storage/${id}`)).text(), "abcdefghi");
});

Deno.test("RU3 a server goes on where the one before it stopped, and cuts off what was not certain", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const contents = bytesOf("0123456789");
    let location = "";
    let url = "";
    {
      await using storage = await startTestStorage({ dir });
      const tus = clientOf(storage);
      url = await storage.uploadUrl();
      location = await tus.begin(url, 10);
      await tus.patch(location, { offset: 0, body: contents.slice(0, 4) });
      const part = spooled(storage).find((name) => name.endsWith(".part")) ?? "";
      const folder = join(dir, "storage", "resumable");
      await Deno.writeFile(join(folder, part), bytesOf("unsure"), { append: true });
      await Deno.writeTextFile(join(folder, "left over"), "x");
      await Deno.writeTextFile(join(folder, `${"A".repeat(22)}.json`), "{");
    }
    await using storage = await startTestStorage({ dir });
    const tus = clientOf(storage);
    const left = spooled(storage);
    assert.equal(left.length, 2);
    const part = left.find((name) => name.endsWith(".part")) ?? "";
    assert.equal((await Deno.stat(join(dir, "storage", "resumable", part))).size, 4);
    assert.equal(await offsetOf(tus, location), "4");
    assert.equal(await errorOf(await storage.post(url, "other")), "409 upload_in_progress");
    const last = await tus.patch(location, { offset: 4, body: contents.slice(4) });
    assert.equal((await storage.rows("_storage"))[0]?.sha256, sha256(contents));
    assert.ok(last.headers.get("syncline-storage-id"));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("RU3 an upload whose bytes are lost is forgotten, not filled with something else", async () => {
  const dir = await Deno.makeTempDir();
  try {
    let [location, part] = ["", ""];
    {
      await using storage = await startTestStorage({ dir });
      const tus = clientOf(storage);
      location = await tus.begin(await storage.uploadUrl(), 10);
      await tus.patch(location, { offset: 0, body: bytesOf("1234") });
      part = spooled(storage).find((name) => name.endsWith(".part")) ?? "";
    }
    await Deno.truncate(join(dir, "storage", "resumable", part), 3);
    await using storage = await startTestStorage({ dir });
    assert.equal(await offsetOf(clientOf(storage), location), "404");
    assert.deepEqual(spooled(storage), []);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("RU4 bytes for another place than the next one are refused and change nothing", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 6);
  await tus.patch(location, { offset: 0, body: bytesOf("abc") });
  for (const offset of [0, 2, 4, 6]) {
    const answer = await tus.patch(location, { offset, body: bytesOf("x") });
    assert.equal(await errorOf(answer), "409 wrong_upload_offset");
  }
  assert.equal(await offsetOf(tus, location), "3");
  await tus.patch(location, { offset: 3, body: bytesOf("def") });
  const late = await tus.patch(location, { offset: 3, body: bytesOf("def") });
  assert.equal(await errorOf(late), "409 wrong_upload_offset");
  const repeated = await tus.patch(location, { offset: 6, body: "" });
  assert.equal(repeated.status, 204);
  assert.ok(repeated.headers.get("syncline-storage-id"));
});

Deno.test("RU5 of two requests at once the newer goes on where the older was ended", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 6);
  const begun = Promise.withResolvers<void>();
  const half = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(bytesOf("abc")),
    // Asked for more: what there was has been taken.
    pull: () => begun.resolve(),
  }, { highWaterMark: 0 });
  const older = tus.patch(location, { offset: 0, body: half });
  await begun.promise;
  const newer = tus.patch(location, { offset: 0, body: bytesOf("abcdef") });
  assert.equal(await errorOf(await older), "409 upload_in_progress");
  assert.equal(await errorOf(await newer), "409 wrong_upload_offset");
  assert.equal(await offsetOf(tus, location), "3");
  const racing = await Promise.all(["def", "DEF"].map(async (text) => {
    const answer = await tus.patch(location, { offset: 3, body: bytesOf(text) });
    return [answer.status, text] as const;
  }));
  const winners = racing.filter(([status]) => status === 204);
  assert.equal(winners.length, 1);
  const id = (await tus.head(location)).headers.get("syncline-storage-id");
  assert.equal(await (await storage.request(`/api/storage/${id}`)).text(), `abc${winners[0]?.[1]}`);
});

Deno.test("RU6 the rules of upload URLs hold, and an unfinished upload keeps others from its URL", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const url = await storage.uploadUrl();
  const length = { "Upload-Length": "3" };
  const tampered = url.replace(/.$/, (last) => last === "A" ? "B" : "A");
  assert.equal(await errorOf(await tus.create(tampered, length)), "403 invalid_upload_url");
  assert.equal(
    await errorOf(await tus.create("/api/storage/resumable", length)),
    "403 invalid_upload_url",
  );
  const location = await tus.begin(url, 3);
  for (const wrong of [location.slice(0, -1), `${location}x`, location.replace(/[\w-]+\./, "other.")]) {
    assert.equal((await tus.head(wrong)).status, 403);
    assert.equal(
      await errorOf(await tus.patch(wrong, { offset: 0, body: bytesOf("abc") })),
      "403 invalid_upload_url",
    );
    assert.equal(await errorOf(await tus.remove(wrong)), "403 invalid_upload_url");
  }
  assert.equal(await errorOf(await storage.post(url, "abc")), "409 upload_in_progress");
  assert.equal(await errorOf(await tus.create(url, { "Upload-Length": "4" })), "409 upload_in_progress");
  await tus.patch(location, { offset: 0, body: bytesOf("abc") });
  assert.equal(await errorOf(await tus.create(url, length)), "403 upload_url_used");
  assert.equal(await errorOf(await storage.post(url, "abc")), "403 upload_url_used");

  const unused = await storage.uploadUrl();
  storage.clock.now += HOUR_MS + 1;
  assert.equal(await errorOf(await tus.create(unused, length)), "403 upload_url_expired");
  assert.equal(await offsetOf(tus, resumable(unused).replace("?token=", "/")), "404");

  const single = await storage.uploadUrl();
  const { promise, resolve } = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await promise;
      controller.close();
    },
  });
  const running = storage.post(single, body);
  assert.equal(await errorOf(await tus.create(single, length)), "409 upload_in_progress");
  resolve();
  assert.equal((await running).status, 200);
});

const refusals = [
  { name: "RU7 no length", headers: {}, answer: "400 bad_request" },
  { name: "RU7 a length that is none", headers: { "Upload-Length": "-1" }, answer: "400 bad_request" },
  { name: "RU7 a length to come", headers: { "Upload-Defer-Length": "1" }, answer: "400 bad_request" },
  { name: "RU7 too large a file", headers: { "Upload-Length": "1001" }, answer: "413 file_too_large" },
  {
    name: "RU7 a bad content type",
    headers: { "Upload-Length": "1001", "Upload-Metadata": metadata({ filetype: "nonsense" }) },
    answer: "400 invalid_content_type",
  },
  {
    name: "RU7 metadata that are no base64",
    headers: { "Upload-Length": "1", "Upload-Metadata": "filename ???" },
    answer: "400 bad_request",
  },
  {
    name: "RU7 a key twice",
    headers: { "Upload-Length": "1", "Upload-Metadata": "a YQ==,a YQ==" },
    answer: "400 bad_request",
  },
  {
    name: "RU7 metadata without end",
    headers: { "Upload-Length": "1", "Upload-Metadata": metadata({ filename: "x".repeat(4_000) }) },
    answer: "400 bad_request",
  },
  {
    name: "RU7 first bytes with a checksum that is none",
    headers: { "Upload-Length": "3", "Content-Type": chunkType, "Upload-Checksum": "sha1 ???" },
    answer: "400 bad_request",
    body: "abc",
  },
  {
    name: "RU7 more first bytes than the file is to have",
    headers: { "Upload-Length": "2", "Content-Type": chunkType, "Content-Length": "3" },
    answer: "413 file_too_large",
    body: "abc",
  },
];

Deno.test("RU7 a beginning that does not fit is refused and leaves the URL usable", async (t) => {
  await using storage = await startTestStorage({ uploadBytesMax: 1_000 });
  const tus = clientOf(storage);
  const url = await storage.uploadUrl();
  for (const { name, headers, answer, body } of refusals) {
    await t.step(name, async () => {
      assert.equal(await errorOf(await tus.create(url, headers, body)), answer);
      assert.deepEqual(spooled(storage), []);
    });
  }
  assert.equal((await storage.post(url, "abc")).status, 200);
});

Deno.test("RU7 bytes beyond the announced length, and requests that are none of the protocol, are refused", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 4);
  const announced = await tus.patch(location, {
    offset: 0,
    body: bytesOf("abcde"),
    headers: { "Content-Length": "5" },
  });
  assert.equal(await errorOf(announced), "413 file_too_large");
  assert.equal(await offsetOf(tus, location), "0");
  const streamed = new Blob(["ab", "cde"]).stream();
  assert.equal(await errorOf(await tus.patch(location, { offset: 0, body: streamed })), "413 file_too_large");
  const wrongs: [Record<string, string>, string][] = [
    [{ "Content-Type": "text/plain" }, "415 unsupported_media_type"],
    [{ "Upload-Offset": "x" }, "400 bad_request"],
    [{ "Upload-Checksum": "crc32 AAAAAA==" }, "400 bad_request"],
    [{ "Tus-Resumable": "0.2.2" }, "412 unsupported_tus_version"],
  ];
  for (const [headers, answer] of wrongs) {
    assert.equal(
      await errorOf(await tus.patch(location, { offset: 0, body: bytesOf("a"), headers })),
      answer,
    );
  }
  const put = await storage.request(location, { method: "PUT", headers: { "Tus-Resumable": "1.0.0" } });
  assert.equal(await errorOf(put), "405 method_not_allowed");
});

Deno.test("RU8 bytes count only with the checksum that came with them", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 6);
  const checksum = (algorithm: string, text: string) => ({
    "Upload-Checksum": `${algorithm} ${createHash(algorithm).update(text).digest("base64")}`,
  });
  const part = () => {
    const name = spooled(storage).find((name) => name.endsWith(".part")) ?? "";
    return Deno.statSync(join(storage.dir, "storage", "resumable", name)).size;
  };
  for (const algorithm of ["sha1", "sha256", "md5"]) {
    const wrong = await tus.patch(location, {
      offset: 0,
      body: bytesOf("abd"),
      headers: checksum(algorithm, "abc"),
    });
    assert.equal(await errorOf(wrong), "460 checksum_mismatch");
    assert.equal(await offsetOf(tus, location), "0");
    assert.equal(part(), 0, "what does not count takes no disk");
  }
  const broken = new ReadableStream({
    start: (controller) => controller.enqueue(bytesOf("ab")),
    pull: (controller) => controller.error(new Error("gone")),
  });
  const half = { offset: 0, body: broken, headers: checksum("sha1", "abc") };
  assert.equal(await errorOf(await tus.patch(location, half)), "400 upload_failed");
  assert.equal(await offsetOf(tus, location), "0");
  const right = { offset: 0, body: bytesOf("abc"), headers: checksum("sha1", "abc") };
  assert.equal((await tus.patch(location, right)).status, 204);
  const last = await tus.patch(location, { offset: 3, body: bytesOf("def") });
  const id = last.headers.get("syncline-storage-id");
  assert.equal(await (await storage.request(`/api/storage/${id}`)).text(), "abcdef");
  assert.equal((await storage.rows("_storage"))[0]?.sha256, sha256(bytesOf("abcdef")));
});

Deno.test("RU9 what is given up is gone, and its URL works again; a finished file is not given up", async () => {
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

Deno.test("RU10 an upload goes on after its URL has expired, but not for ever; the sweep removes it", async () => {
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

Deno.test("RU11 a beginning whose answer was lost is asked for again, and tells how far the upload is", async () => {
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

Deno.test("RU11 an end that failed half way is made up for by whoever asks", async () => {
  const dir = await Deno.makeTempDir();
  try {
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
                // Once before the bytes are taken over, once after it.
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
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("RU11 what is asked to become a file a second time is the same file", async () => {
  const dir = await Deno.makeTempDir();
  const folder = join(dir, "storage", "resumable");
  const kept = new Map<string, Uint8Array>();
  try {
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
    // As if the server had been killed between the commit and the removal of what it was made of.
    for (const [name, bytes] of kept) await Deno.writeFile(join(folder, name), bytes);
    await using storage = await startTestStorage({ dir });
    const tus = clientOf(storage);
    assert.equal((await tus.head(location)).headers.get("syncline-storage-id"), id);
    assert.equal((await storage.rows("_storage")).length, 1);
    assert.equal(await (await storage.request(`/api/storage/${id}`)).text(), "abc");
    assert.deepEqual(spooled(storage), []);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("RU11 an end whose answer was lost with the server is told as used when its file was deleted", async () => {
  const dir = await Deno.makeTempDir();
  const folder = join(dir, "storage", "resumable");
  try {
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
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("RU12 requests of one client are limited, and the disk all unfinished uploads take together", async () => {
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

Deno.test("RU12 requests that wait for one upload are bounded; those that waited are told the same", async () => {
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

Deno.test("RU13 every answer may be read by pages of other origins, and says what the server can do", async () => {
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

Deno.test("RU13 clients that can only POST say what they mean in a header", async () => {
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

Deno.test("RU14 who uploaded is remembered, and the file is deleted like any other", async () => {
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
