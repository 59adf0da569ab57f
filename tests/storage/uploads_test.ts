/** Uploads: every row of the contract's tables. */
import assert from "node:assert/strict";
import { failed } from "../../mod/functions/outcome.ts";
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Identity } from "../../mod/functions/identity.ts";
import { storageLimits } from "../../mod/storage/limits.ts";
import type { BlobStore, BlobWriter } from "../../mod/storage/blobs/blob_store.ts";
import { errorOf, startTestStorage, urlKey } from "./support/test_storage.ts";
import { UrlSigner } from "../../mod/storage/url_signer.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { pause } from "../support/waiting.ts";

const HOUR_MS = 3_600_000;

/** A body whose chunks the test provides, and whether its reader canceled it. */
function heldBody() {
  let held: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  const gate = { cancelled: false };
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => void (held = controller),
    cancel: () => void (gate.cancelled = true),
  });
  const controller = () => {
    assert.ok(held);
    return held;
  };
  return {
    stream,
    gate,
    send: (text: string) => controller().enqueue(new TextEncoder().encode(text)),
    end: () => controller().close(),
    breakOff: () => controller().error(new Error("connection reset")),
  };
}

/** A store with a modified writer. */
function withWrites(store: BlobStore, write: (writer: BlobWriter) => BlobWriter["write"]): BlobStore {
  return new Proxy(store, {
    get(target, name) {
      if (name !== "create") return Reflect.get(target, name).bind?.(target);
      return async (blob: string): Promise<BlobWriter> => {
        const writer = await target.create(blob);
        return { write: write(writer), commit: () => writer.commit(), abort: () => writer.abort() };
      };
    },
  });
}

Deno.test("UP1 an upload is stored with all its metadata", async () => {
  await using s = await startTestStorage();
  const identity: Identity = { principal: "user:abc123", userId: "abc123", adminId: null, sessionId: null };
  const contents = crypto.getRandomValues(new Uint8Array(60_000));
  const response = await s.post(await s.uploadUrl(identity), contents, {
    type: "Text/Plain; charset=utf-8",
    name: "C:\\docs\\r\u0007ésumé.txt",
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.match(response.headers.get("content-security-policy") ?? "", /^default-src 'none';.*sandbox$/);
  const { storageId, ...rest } = await response.json();
  assert.deepEqual(rest, {});
  const { _creationTime, ...metadata } = await s.call("files:metadata", { id: storageId }) as Record<
    string,
    unknown
  >;
  assert.equal(typeof _creationTime, "number");
  assert.deepEqual(metadata, {
    _id: storageId,
    contentType: "Text/Plain; charset=utf-8",
    name: "résumé.txt",
    sha256: createHash("sha256").update(contents).digest("hex"),
    size: 60_000,
    createdBy: "abc123",
  });
  const [blob = ""] = await s.blobs();
  assert.deepEqual(await Deno.readFile(join(s.dir, "storage", blob.slice(0, 2), blob)), contents);
});

Deno.test("UP1 content type, name and body are optional", async () => {
  await using s = await startTestStorage();
  const id = await s.upload(new Uint8Array(0));
  const metadata = await s.call("files:metadata", { id }) as Record<string, unknown>;
  assert.equal(metadata["contentType"], null);
  assert.equal(metadata["name"], null);
  assert.equal(metadata["createdBy"], null);
  assert.equal(metadata["size"], 0);
});

Deno.test("UP2 a token that is missing, malformed or wrongly signed is invalid_upload_url", async () => {
  await using s = await startTestStorage();
  const url = await s.uploadUrl();
  const token = new URL(url, "http://x").searchParams.get("token") ?? "";
  const other = new UrlSigner(new Uint8Array(32).fill(8)).uploadToken({
    createdAt: s.clock.now,
    createdBy: null,
  });
  const [random, at, by, signature] = token.split(".");
  const later = `${random}.${(s.clock.now + HOUR_MS).toString(36)}.${by}.${signature}`;
  const otherUpload = `${random}.${at}.abc.${signature}`;
  const wrong = [
    "",
    "x",
    `${token}x`,
    token.slice(1),
    token.slice(0, -1),
    later,
    otherUpload,
    other,
    "é".repeat(99),
  ];
  for (const text of wrong) {
    const response = await s.post(`/api/storage/upload?token=${encodeURIComponent(text)}`, "x");
    assert.equal(await errorOf(response), "403 invalid_upload_url", text);
  }
  assert.equal(await errorOf(await s.post("/api/storage/upload", "x")), "403 invalid_upload_url");
  assert.deepEqual(await s.blobs(), []);
});

Deno.test("UP3 a URL can be used for one hour", async () => {
  await using s = await startTestStorage();
  const [early, late] = [await s.uploadUrl(), await s.uploadUrl()];
  s.clock.now += HOUR_MS;
  assert.equal((await s.post(early, "x")).status, 200);
  s.clock.now += 1;
  assert.equal(await errorOf(await s.post(late, "x")), "403 upload_url_expired");
  assert.equal((await s.blobs()).length, 1);
});

Deno.test("UP4 a URL accepts one upload, also after its hour", async () => {
  await using s = await startTestStorage();
  const url = await s.uploadUrl();
  assert.equal((await s.post(url, "x")).status, 200);
  assert.equal(await errorOf(await s.post(url, "y")), "403 upload_url_used");
  s.clock.now += HOUR_MS + 1;
  assert.equal(await errorOf(await s.post(url, "y")), "403 upload_url_used");
  s.clock.now += storageLimits.usedUploadKeptMs;
  await s.service.sweep();
  assert.equal(await errorOf(await s.post(url, "y")), "403 upload_url_expired");
});

Deno.test("UP5 a second concurrent upload is rejected, and the first continues", async () => {
  await using s = await startTestStorage();
  const url = await s.uploadUrl();
  const body = heldBody();
  const first = s.post(url, body.stream);
  body.send("one ");
  assert.equal(await errorOf(await s.post(url, "other")), "409 upload_in_progress");
  body.send("two");
  body.end();
  const { storageId } = await (await first).json();
  assert.equal(await (await s.request(`/api/storage/${storageId}`)).text(), "one two");
});

Deno.test("UP6 an incomplete body leaves nothing behind, and the URL stays valid", async () => {
  await using s = await startTestStorage();
  const url = await s.uploadUrl();
  for (let tenth = 0; tenth < 10; tenth++) {
    const body = heldBody();
    const answer = s.post(url, body.stream);
    for (let sent = 0; sent < tenth; sent++) body.send("x".repeat(1_000));
    body.breakOff();
    assert.equal(await errorOf(await answer), "400 upload_failed");
  }
  assert.deepEqual(await s.blobs(), []);
  assert.deepEqual([...Deno.readDirSync(join(s.dir, "storage", "tmp"))], []);
  assert.equal((await s.post(url, "x")).status, 200);
});

Deno.test("UP6 a body of another length than announced is upload_failed", async () => {
  await using s = await startTestStorage();
  const url = await s.uploadUrl();
  for (const length of ["4", "6", "0"]) {
    const response = await s.request(url, {
      method: "POST",
      body: "12345",
      headers: { "Content-Length": length },
    });
    assert.equal(await errorOf(response), "400 upload_failed");
  }
  assert.deepEqual(await s.blobs(), []);
  assert.equal((await s.post(url, "x")).status, 200);
});

Deno.test("UP6 a stalled body fails", async () => {
  await using s = await startTestStorage({ uploadStallMs: 20 });
  const url = await s.uploadUrl();
  const body = heldBody();
  const answer = s.post(url, body.stream);
  body.send("x");
  assert.equal(await errorOf(await answer), "400 upload_failed");
  assert.ok(body.gate.cancelled);
  assert.equal((await s.post(url, "x")).status, 200);
});

Deno.test("UP7 a file over the limit is rejected before it is read if its length is announced", async () => {
  await using s = await startTestStorage({ uploadBytesMax: 1_000 });
  const url = await s.uploadUrl();
  const body = heldBody();
  const response = await s.request(url, {
    method: "POST",
    body: body.stream,
    headers: { "Content-Length": "1001" },
  });
  assert.equal(await errorOf(response), "413 file_too_large");
  assert.equal((await s.post(url, "x".repeat(1_000))).status, 200);
});

Deno.test("UP7 a file over the limit is rejected as soon as it exceeds it", async () => {
  await using s = await startTestStorage({ uploadBytesMax: 1_000 });
  const url = await s.uploadUrl();
  const body = heldBody();
  const answer = s.post(url, body.stream);
  body.send("x".repeat(1_000));
  body.send("x");
  assert.equal(await errorOf(await answer), "413 file_too_large");
  assert.ok(body.gate.cancelled);
  assert.deepEqual(await s.blobs(), []);
  assert.equal((await s.post(url, "x".repeat(1_000))).status, 200);
});

Deno.test("UP7 bytes being written are not overwritten by later ones", async () => {
  const contents = new Uint8Array(randomBytes(3_000_000));
  let overwritten = 0;
  await using s = await startTestStorage({
    uploadBytesMax: contents.length,
    wrapStore: (store) =>
      withWrites(store, (writer) => async (chunk) => {
        const before = chunk.slice();
        await pause(5);
        if (!before.every((byte, at) => byte === chunk[at])) overwritten++;
        await writer.write(before);
      }),
  });
  // A BYOB stream, as request bodies are.
  const id = await s.upload(new Blob([contents]).stream());
  assert.equal(overwritten, 0);
  assert.deepEqual(await (await s.request(`/api/storage/${id}`)).bytes(), contents);
  const { sha256 } = await s.call("files:metadata", { id }) as { sha256: string };
  assert.equal(sha256, createHash("sha256").update(contents).digest("hex"));
});

Deno.test("UP8 a content type must be valid", async () => {
  await using s = await startTestStorage();
  const url = await s.uploadUrl();
  const wrong = [
    "text",
    "text/",
    "/plain",
    "text/plain, text/html",
    "text/pl ain",
    "a/b;c",
    "text/plain; charset=é",
  ];
  for (const type of [...wrong, `text/${"x".repeat(251)}`]) {
    const response = await s.post(url, "x", { type });
    assert.equal(await errorOf(response), "400 invalid_content_type", type);
  }
  const right = [
    "a/b",
    `text/${"x".repeat(250)}`,
    'text/plain;charset="utf \\" 8" ; a=b',
    "image/svg+xml",
    "a/b;",
  ];
  for (const type of right) {
    const response = await s.request(`/api/storage/${await s.upload("x", { type })}`);
    assert.equal(response.headers.get("content-type"), type);
    assert.equal(await response.text(), "x");
  }
});

Deno.test("UP9 uploads are limited per client address", async () => {
  await using s = await startTestStorage();
  const from = "203.0.113.9";
  for (let count = 0; count < 60; count++) {
    assert.equal(
      await errorOf(await s.post("/api/storage/upload?token=x", "x", { from })),
      "403 invalid_upload_url",
    );
  }
  const refused = await s.post(await s.uploadUrl(), "x", { from });
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal(await errorOf(refused), "429 rate_limited");
  assert.equal((await s.post(await s.uploadUrl(), "x", { from: "203.0.113.10" })).status, 200);
  s.clock.now += 500;
  assert.equal((await s.post(await s.uploadUrl(), "x", { from })).status, 200);
});

Deno.test("UP10 names are the last segment, without control characters, at most 255 characters", async () => {
  await using s = await startTestStorage();
  const names: [given: string, kept: string | null][] = [
    ["a.txt", "a.txt"],
    ["../../etc/passwd", "passwd"],
    ["a\\b/c\\d e.txt", "d e.txt"],
    ["x\u0000\u001f\u007f\u0085y", "xy"],
    ["a/", null],
    ["..", null],
    [".", null],
    ["\u0000", null],
    ["", null],
    ["é".repeat(300), "é".repeat(255)],
    [`${"x".repeat(254)}😀`, "x".repeat(254)],
    [`${"x".repeat(253)}😀y`, `${"x".repeat(253)}😀`],
  ];
  for (const [given, kept] of names) {
    const id = await s.upload("x", { name: given });
    const metadata = await s.call("files:metadata", { id }) as Record<string, unknown>;
    assert.equal(metadata["name"], kept, JSON.stringify(given));
  }
});

Deno.test("UP11 the upload URL of a failed mutation is never returned, and queries cannot create any", async () => {
  await using s = await startTestStorage();
  await assert.rejects(s.call("files:generateAndFail"), /no/);
  assert.deepEqual(s.host.ts, 0, "generating writes nothing");
});

Deno.test("UP12 URLs are absolute when a public address is configured", async () => {
  await using s = await startTestStorage({ baseUrl: "https://files.example.com" });
  assert.match(await s.uploadUrl(), /^https:\/\/files\.example\.com\/api\/storage\/upload\?token=/);
  const id = await s.upload("x");
  assert.equal(await s.call("files:url", { id }), `https://files.example.com/api/storage/${id}`);
  assert.match(
    String(await s.call("files:signedUrl", { id, ttlSeconds: 5 })),
    /^https:\/\/files\.example\.com\/api\/storage\/\w+\?exp=1893456005&sig=[\w-]{43}$/,
  );
});

Deno.test("UP13 if the commit fails the response is an error, the URL stays usable and the cleanup removes the blob", async () => {
  await using s = await startTestStorage();
  const url = await s.uploadUrl();
  const { mutate } = s.host;
  s.host.mutate = () =>
    Promise.resolve({
      outcome: {
        ok: false,
        error: { kind: "internal", message: "the disk is full", data: null },
        logLines: [],
      },
      ts: 0,
      replayed: false,
    });
  assert.equal(await errorOf(await s.post(url, "x")), "500 internal");
  s.host.mutate = mutate;
  assert.equal((await s.blobs()).length, 1);
  const kept = await s.upload("kept");
  // Files have the machine's times, so an orphan requires a clock that is ahead.
  s.clock.now = Date.now() + storageLimits.orphanAgeMs + 1_000;
  await s.service.sweep();
  assert.equal((await s.blobs()).length, 1);
  assert.equal(await (await s.request(`/api/storage/${kept}`)).text(), "kept");
});

Deno.test("BS9 contents of an earlier database state are kept while that state is stored", async () => {
  let aside: number | null = null;
  await using s = await startTestStorage({ databaseReplacedAt: () => Promise.resolve(aside) });
  const id = await s.upload("of the state before");
  // A restore moved the database away that references it; the current one does not.
  const url = await s.uploadUrl();
  const mutate = s.host.mutate;
  s.host.mutate = () => Promise.resolve({ outcome: failed("internal", "gone"), ts: 0, replayed: false });
  await s.post(url, "orphan");
  s.host.mutate = mutate;
  assert.equal((await s.blobs()).length, 2);
  aside = Date.now() + 1_000;
  s.clock.now = Date.now() + storageLimits.orphanAgeMs + 2_000;
  await s.service.sweep();
  assert.equal((await s.blobs()).length, 2);
  aside = null;
  await s.service.sweep();
  assert.equal((await s.blobs()).length, 1);
  assert.equal(await (await s.request(`/api/storage/${id}`)).text(), "of the state before");
});

Deno.test("[PG9] contents are not treated as orphans if another server may have stored them", async () => {
  let leads = true;
  await using s = await startTestStorage({ knowsAll: () => leads });
  // As if only the next leader had the document.
  const url = await s.uploadUrl();
  const mutate = s.host.mutate;
  s.host.mutate = () => Promise.resolve({ outcome: failed("internal", "gone"), ts: 0, replayed: false });
  await s.post(url, "another's");
  s.host.mutate = mutate;
  s.clock.now = Date.now() + storageLimits.orphanAgeMs + 1_000;
  leads = false;
  await s.service.sweep();
  assert.equal((await s.blobs()).length, 1);
  leads = true;
  await s.service.sweep();
  assert.deepEqual(await s.blobs(), []);
});

Deno.test("UP13 a failed write returns an internal error, leaves nothing behind, and the URL stays valid", async () => {
  let written = 0;
  await using s = await startTestStorage({
    wrapStore: (store) =>
      withWrites(store, (writer) => (chunk) => {
        if (++written === 2) return Promise.reject(new Error("No space left on device"));
        return writer.write(chunk);
      }),
  });
  const url = await s.uploadUrl();
  // Several chunks, so that others are queued behind the failing one.
  const contents = new Uint8Array(900_000).fill(7);
  assert.equal(await errorOf(await s.post(url, new Blob([contents]).stream())), "500 internal");
  assert.ok(written < 4);
  assert.deepEqual(await s.blobs(), []);
  assert.deepEqual([...Deno.readDirSync(join(s.dir, "storage", "tmp"))], []);
  assert.equal((await s.post(url, new Blob([contents]).stream())).status, 200);
});

Deno.test("UP14 partial files of a stopped server are removed at the next start", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  {
    await using s = await startTestStorage({ dir });
    await Deno.writeTextFile(join(s.dir, "storage", "tmp", "half"), "half");
    await s.upload("whole");
  }
  await using s = await startTestStorage({ dir });
  assert.deepEqual([...Deno.readDirSync(join(dir, "storage", "tmp"))], []);
  assert.equal((await s.blobs()).length, 1);
});

Deno.test("UP15 tokens can be created only with the key of URL signatures", () => {
  const signer = new UrlSigner(urlKey);
  const token = signer.uploadToken({ createdAt: 1_000, createdBy: "abc" });
  assert.deepEqual({ ...signer.readUploadToken(token), token: "" }, {
    token: "",
    createdAt: 1_000,
    createdBy: "abc",
  });
  for (let at = 0; at < token.length; at++) {
    const other = token[at] === "a" ? "b" : "a";
    assert.equal(signer.readUploadToken(token.slice(0, at) + other + token.slice(at + 1)), null, `at ${at}`);
  }
});
