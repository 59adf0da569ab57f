/** Reads of complete files: headers, conditions, signatures, in the contract's order. */
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { join } from "node:path";
import { errorOf, startTestStorage, type TestStorage, urlKey } from "./support/test_storage.ts";

const CSP = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/** A signature computed independently of the implementation. */
function signature(id: string, exp: number | string): string {
  return createHmac("sha256", urlKey).update(`${id}\n${exp}`).digest("base64url");
}

const seconds = (s: TestStorage) => s.clock.now / 1000;

Deno.test("FR1 a file is returned with every header of the contract", async () => {
  await using s = await startTestStorage();
  const id = await s.upload("hello", { type: "text/plain; charset=utf-8", name: "hello.txt" });
  const response = await s.request(`/api/storage/${id}`);
  assert.equal(response.status, 200);
  const sha256 = createHash("sha256").update("hello").digest("hex");
  assert.deepEqual(Object.fromEntries(response.headers), {
    "accept-ranges": "bytes",
    "cache-control": "private, max-age=2592000, immutable",
    "content-disposition": `inline; filename="hello.txt"; filename*=UTF-8''hello.txt`,
    "content-length": "5",
    "content-security-policy": CSP,
    "content-type": "text/plain; charset=utf-8",
    "etag": `"${sha256}"`,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
  assert.equal(await response.text(), "hello");
  const nameless = await s.request(`/api/storage/${await s.upload("x")}`);
  assert.equal(nameless.headers.get("content-type"), "application/octet-stream");
  assert.equal(nameless.headers.get("content-disposition"), "attachment");
  assert.equal(await nameless.text(), "x");
});

Deno.test("FR1 a small cached file is returned by the fast path with the same response", async () => {
  await using s = await startTestStorage();
  const atOnce = (path: string, init?: RequestInit) =>
    s.service.readAtOnce(new Request(`https://files.example.com:8080${path}`, init));
  for (const type of ["text/plain", "text/html", "application/pdf", null]) {
    const path = `/api/storage/${await s.upload("hello", { type, name: "a b.txt" })}`;
    assert.equal(atOnce(path), null);
    const first = await s.request(path);
    const text = await first.text();
    for (const next of [atOnce(path), atOnce(path), atOnce(path)]) {
      assert.ok(next !== null);
      assert.deepEqual(Object.fromEntries(next.headers), Object.fromEntries(first.headers), String(type));
      assert.deepEqual([next.status, await next.text()], [first.status, text]);
    }
    const others: [path: string, init?: RequestInit][] = [
      [`${path}?download=1`],
      [`${path}/`],
      [`/x${path}`],
      [path, { method: "HEAD" }],
      [path, { method: "DELETE" }],
      [path, { headers: { Range: "bytes=0-1" } }],
      [path, { headers: { "If-None-Match": "*" } }],
    ];
    for (const [other, init] of others) assert.equal(atOnce(other, init), null, other);
  }
  const id = await s.upload("large".repeat(100_000));
  await (await s.request(`/api/storage/${id}`)).body?.cancel();
  assert.equal(atOnce(`/api/storage/${id}`), null);
  const doomed = await s.upload("doomed");
  await (await s.request(`/api/storage/${doomed}`)).text();
  await s.call("files:remove", { id: doomed });
  assert.equal(atOnce(`/api/storage/${doomed}`), null);
});

Deno.test("FR7 with private storage the fast path is off", async () => {
  await using s = await startTestStorage({ private: true });
  const id = await s.upload("hello");
  const url = String(await s.call("files:signedUrl", { id, ttlSeconds: 60 }));
  assert.equal(await (await s.request(url)).text(), "hello");
  assert.equal(await errorOf(await s.request(`/api/storage/${id}`)), "403 signature_required");
});

Deno.test("FR2 HEAD returns the headers of GET, without ranges", async () => {
  await using s = await startTestStorage();
  const id = await s.upload("hello");
  const get = await s.request(`/api/storage/${id}`);
  for (const headers of [{}, { Range: "bytes=0-1" }, { Range: "bytes=9-" }]) {
    const head = await s.request(`/api/storage/${id}`, { method: "HEAD", headers });
    assert.equal(head.status, 200);
    assert.deepEqual(Object.fromEntries(head.headers), Object.fromEntries(get.headers));
    assert.equal(head.body, null);
  }
  assert.equal(await get.text(), "hello");
  assert.equal((await s.request("/api/storage/none", { method: "HEAD" })).status, 404);
});

Deno.test("FR3 a file the client has cached is not sent again", async () => {
  await using s = await startTestStorage();
  const id = await s.upload("hello");
  const etag = (await s.request(`/api/storage/${id}`, { method: "HEAD" })).headers.get("etag") ?? "";
  for (const ifNoneMatch of [etag, `W/${etag}`, "*", `"other", ${etag}`, `"a,b" ,${etag},`]) {
    for (const method of ["GET", "HEAD"]) {
      const headers = { "If-None-Match": ifNoneMatch, Range: "bytes=0-1" };
      const response = await s.request(`/api/storage/${id}`, { method, headers });
      assert.equal(response.status, 304, ifNoneMatch);
      assert.equal(await response.text(), "");
      assert.equal(response.headers.get("etag"), etag);
      assert.equal(response.headers.get("cache-control"), "private, max-age=2592000, immutable");
      assert.equal(response.headers.get("content-security-policy"), CSP);
    }
  }
  for (const ifNoneMatch of ['"other"', etag.slice(1, -1), `"x${etag.slice(1)}`, ""]) {
    const response = await s.request(`/api/storage/${id}`, { headers: { "If-None-Match": ifNoneMatch } });
    assert.equal(response.status, 200, ifNoneMatch);
    assert.equal(await response.text(), "hello");
  }
});

Deno.test("FR4 any other id is not_found, with no content that a browser could run", async () => {
  await using s = await startTestStorage();
  const id = await s.upload("hello");
  await s.call("files:remove", { id });
  const unknown = ["x", id, id.slice(1), `${id}0`, id.toUpperCase(), "%2e%2e%2fdata.db", "%00", "upload"];
  for (const none of unknown) {
    const response = await s.request(`/api/storage/${none}`);
    assert.equal(response.headers.get("content-security-policy"), CSP);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(await errorOf(response), "404 not_found", none);
  }
});

Deno.test("FR4 ids of other tables are not_found", async () => {
  await using s = await startTestStorage({ keepDeletedMs: 1_000 });
  const id = await s.upload("hello");
  // The row of the used URL has an ID of another table in the same format.
  const [used] = await s.rows("_uploads");
  assert.ok(used !== undefined && typeof used["_id"] === "string" && used["_id"].length === id.length);
  assert.equal(await errorOf(await s.request(`/api/storage/${used["_id"]}`)), "404 not_found");
});

Deno.test("FR4 a file whose contents are missing is not_found", async () => {
  await using s = await startTestStorage();
  const id = await s.upload("hello");
  const [blob = ""] = await s.blobs();
  await Deno.remove(join(s.dir, "storage", blob.slice(0, 2), blob));
  for (const headers of [{}, { Range: "bytes=0-1" }, { Range: "bytes=0-0,3-3" }]) {
    assert.equal(await errorOf(await s.request(`/api/storage/${id}`, { headers })), "404 not_found");
  }
});

Deno.test("FR5 a signed URL works until it expires, and no response is cached longer", async () => {
  await using s = await startTestStorage();
  const id = await s.upload("hello");
  const url = String(await s.call("files:signedUrl", { id, ttlSeconds: 60 }));
  const exp = seconds(s) + 60;
  assert.equal(url, `/api/storage/${id}?exp=${exp}&sig=${signature(id, exp)}`);
  const cacheControl = async (path: string) => {
    const response = await s.request(path);
    await response.body?.cancel();
    return `${response.status} ${response.headers.get("cache-control")}`;
  };
  assert.equal(await cacheControl(url), "200 private, max-age=60, immutable");
  assert.equal(await cacheControl(`${url}&download=1`), "200 private, max-age=60, immutable");
  s.clock.now += 59_500;
  assert.equal(await cacheControl(url), "200 private, max-age=0, immutable");
  s.clock.now += 500;
  assert.equal(await errorOf(await s.request(url)), "403 url_expired");
  const far = seconds(s) + 10 * 365 * 86_400;
  const long = `/api/storage/${id}?exp=${far}&sig=${signature(id, far)}`;
  assert.equal(await cacheControl(long), "200 private, max-age=2592000, immutable");
});

Deno.test("FR6 a malformed, modified or foreign signature is rejected, private or not", async () => {
  for (const onlySigned of [false, true]) {
    await using s = await startTestStorage({ private: onlySigned });
    const [id, other] = [await s.upload("hello"), await s.upload("other")];
    const exp = seconds(s) + 60;
    const sig = signature(id, exp);
    const wrong = [
      `?exp=${exp}`,
      `?sig=${sig}`,
      `?exp=&sig=${sig}`,
      `?exp=${exp}&sig=`,
      `?exp=${exp}&sig=${sig}x`,
      `?exp=${exp}&sig=${sig}=`,
      `?exp=${exp}&sig=${sig.slice(1)}`,
      `?exp=${exp}&sig=${sig.startsWith("A") ? "B" : "A"}${sig.slice(1)}`,
      `?exp=${exp + 1}&sig=${sig}`,
      `?exp=0${exp}&sig=${sig}`,
      `?exp=+${exp}&sig=${sig}`,
      `?exp=${exp}.0&sig=${sig}`,
      `?exp=${exp}&sig=${encodeURIComponent("é".repeat(43))}`,
      `?exp=${exp}&sig=${signature(other, exp)}`,
      // Expired and wrong: the wrong signature is reported first.
      `?exp=1&sig=${sig}`,
      `?exp=x&sig=${signature(id, "x")}`,
    ];
    for (const query of wrong) {
      assert.equal(
        await errorOf(await s.request(`/api/storage/${id}${query}`)),
        "403 invalid_signature",
        query,
      );
    }
    assert.equal(await (await s.request(`/api/storage/${id}?exp=${exp}&sig=${sig}`)).text(), "hello");
    const gone = "nothing";
    const signed = `/api/storage/${gone}?exp=${exp}&sig=${signature(gone, exp)}`;
    assert.equal(await errorOf(await s.request(signed)), "404 not_found");
    const expired = `/api/storage/${gone}?exp=1&sig=${signature(gone, 1)}`;
    assert.equal(await errorOf(await s.request(expired)), "403 url_expired");
  }
});

Deno.test("FR7 private storage requires a signature before anything else", async () => {
  await using s = await startTestStorage({ private: true });
  const id = await s.upload("hello");
  const headers = { "If-None-Match": "*", Range: "bytes=9-" };
  for (const path of [id, "unknown", `${id}?download=1`, `${id}?thumb=nonsense`]) {
    for (const method of ["GET", "HEAD"]) {
      const response = await s.request(`/api/storage/${path}`, { method, headers });
      assert.equal(response.status, 403);
      if (method === "GET") assert.equal(await errorOf(response), "403 signature_required");
    }
  }
});

const inlineTypes = [
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "image/bmp",
  "image/x-icon",
  "image/vnd.microsoft.icon",
  "audio/mpeg",
  "video/mp4",
  "text/plain",
  "TEXT/Plain;charset=utf-8",
  "text/csv",
  "application/json",
  "application/pdf",
  "application/pdf; a=b",
];
const attachedTypes = [
  "text/html",
  "Text/HTML; charset=utf-8",
  "image/svg+xml",
  "text/xml",
  "application/xml",
  "application/xhtml+xml",
  "text/javascript",
  "application/javascript",
  "application/octet-stream",
  "application/zip",
  "text/css",
  "multipart/x-mixed-replace",
  "message/rfc822",
  "application/json+x",
  null,
];

Deno.test("FR8 types without scripts are shown inline, all others are attachments", async () => {
  await using s = await startTestStorage();
  for (const type of [...inlineTypes, ...attachedTypes]) {
    const id = await s.upload("x", { type });
    for (const download of ["", "?download=1", "?download=0", "?download"]) {
      const { headers, body } = await s.request(`/api/storage/${id}${download}`);
      await body?.cancel();
      const inline = inlineTypes.includes(type ?? "") && download !== "?download=1";
      assert.equal(
        headers.get("content-disposition"),
        inline ? "inline" : "attachment",
        `${type}${download}`,
      );
      const shownPdf = inline && type?.startsWith("application/pdf");
      assert.equal(headers.get("content-security-policy"), shownPdf ? null : CSP, `${type}${download}`);
    }
  }
});

Deno.test("FR9 names are sent in both forms and cannot inject headers", async () => {
  await using s = await startTestStorage();
  const names: [name: string, header: string][] = [
    [`a "b" \\.txt`, `attachment; filename=".txt"; filename*=UTF-8''.txt`],
    [`a"; x=".txt`, `attachment; filename="a_; x=_.txt"; filename*=UTF-8''a%22%3B%20x%3D%22.txt`],
    ["naïve 😀.bin", `attachment; filename="na_ve _.bin"; filename*=UTF-8''na%C3%AFve%20%F0%9F%98%80.bin`],
    ["100%(1)*'.bin", `attachment; filename="100_(1)*'.bin"; filename*=UTF-8''100%25%281%29%2A%27.bin`],
    ["a\r\nSet-Cookie: x", `attachment; filename="aSet-Cookie: x"; filename*=UTF-8''aSet-Cookie%3A%20x`],
  ];
  for (const [name, header] of names) {
    const { headers, body } = await s.request(`/api/storage/${await s.upload("x", { name })}`);
    await body?.cancel();
    assert.equal(headers.get("content-disposition"), header);
  }
});

Deno.test("FR10 a large file is read at the reader's pace", async () => {
  await using s = await startTestStorage({ uploadBytesMax: 20_000_000 });
  const contents = new Uint8Array(8_000_000).fill(1);
  const id = await s.upload(contents);
  for (const range of [null, "bytes=1-7999998", "bytes=0-3000000,3000002-7999999"]) {
    const response = await s.request(
      `/api/storage/${id}`,
      range === null ? {} : { headers: { Range: range } },
    );
    const reader = response.body?.getReader();
    const first = await reader?.read();
    assert.ok(first?.value !== undefined && first.value.length < 1_000_000, "not the whole file at once");
    await reader?.cancel();
  }
});

Deno.test("FR10 small files are served from memory, and deleted ones are not served", async () => {
  let reads = 0;
  await using s = await startTestStorage({
    wrapStore: (store) =>
      new Proxy(store, {
        get(target, name) {
          if (name === "read") reads++;
          return Reflect.get(target, name).bind?.(target);
        },
      }),
  });
  const id = await s.upload("hello");
  for (let count = 0; count < 3; count++) {
    const response = await s.request(`/api/storage/${id}`);
    assert.equal(response.headers.get("content-length"), "5");
    assert.equal(await response.text(), "hello");
  }
  assert.equal(reads, 1);
  await s.call("files:remove", { id });
  assert.equal(await errorOf(await s.request(`/api/storage/${id}`)), "404 not_found");
});
