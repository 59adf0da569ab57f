/** The tus protocol in one process, with a controlled clock and folder. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { resumableLimits } from "../../mod/storage/limits.ts";
import { errorOf, startTestStorage } from "./support/test_storage.ts";
import { chunkType, clientOf, metadata, offsetOf, resumable, spooled } from "./support/tus.ts";
import { TempFolder } from "../support/temp_folder.ts";

const HOUR_MS = 3_600_000;
const bytesOf = (text: string) => new TextEncoder().encode(text);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

Deno.test("RU1 pieces become a file like that of a single upload, named by the last response", async () => {
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

Deno.test("RU1 an empty file is complete immediately, and the first bytes may be sent with the creation", async () => {
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

Deno.test("RU2 bytes received before a body ended early, stalled or had a wrong length are kept and resumed", async () => {
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

Deno.test("RU3 a server resumes where the previous one stopped, truncating bytes that were not durable", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
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
});

Deno.test("RU3 an upload whose bytes are lost is dropped", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
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
});

Deno.test("RU4 bytes for another offset are rejected without changes", async () => {
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

Deno.test("RU5 the newer of two requests resumes where the older was aborted", async () => {
  await using storage = await startTestStorage();
  const tus = clientOf(storage);
  const location = await tus.begin(await storage.uploadUrl(), 6);
  const begun = Promise.withResolvers<void>();
  const half = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(bytesOf("abc")),
    // More is requested once the previous bytes were processed.
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

Deno.test("RU6 the rules of upload URLs apply, and an unfinished upload reserves its URL", async () => {
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
  { name: "RU7 a deferred length", headers: { "Upload-Defer-Length": "1" }, answer: "400 bad_request" },
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

Deno.test("RU7 an invalid creation is rejected and leaves the URL usable", async (t) => {
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

Deno.test("RU7 bytes beyond the announced length and invalid requests are rejected", async () => {
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

Deno.test("RU8 bytes are accepted only with the checksum sent with them", async () => {
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
