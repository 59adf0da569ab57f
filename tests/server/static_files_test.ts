import assert from "node:assert/strict";
import { join } from "node:path";
import { StartError } from "../../mod/config/start_error.ts";
import { CompressedCopies } from "../../mod/server/http/compressed_copies.ts";
import { StaticFiles } from "../../mod/server/http/static_files.ts";
import { staticLimits } from "../../mod/server/limits.ts";

/** Compresses well. */
const LARGE = "let number = 1;\n".repeat(500);
/** Hardly becomes smaller. */
const NOISE = crypto.getRandomValues(new Uint8Array(8_000));

interface Site extends AsyncDisposable {
  readonly files: StaticFiles;
  readonly root: string;
}

async function site(options = { clientRoutes: true }): Promise<Site> {
  const base = await Deno.makeTempDir();
  const root = join(base, "public");
  await Deno.mkdir(join(root, "assets", "empty"), { recursive: true });
  await Deno.mkdir(join(root, ".git"));
  await Deno.mkdir(join(root, ".well-known"));
  await Deno.mkdir(join(base, "public-secret"));
  for (
    const [path, text] of [
      ["public/index.html", "<h1>home</h1>"],
      ["public/app.js", "let x;"],
      ["public/none.unknowntype", "?"],
      ["public/empty.txt", ""],
      ["public/large.js", LARGE],
      ["public/photo.png", LARGE],
      ["public/with space é.txt", "spaced"],
      ["public/assets/index.html", "assets"],
      ["public/assets/big.bin", "0123456789".repeat(50_000)],
      ["public/.env", "SECRET"],
      ["public/.git/config", "SECRET"],
      ["public/.well-known/security.txt", "contact"],
      ["public-secret/key.txt", "SECRET"],
      ["key.txt", "SECRET"],
    ] as const
  ) await Deno.writeTextFile(join(base, path), text);
  await Deno.writeFile(join(root, "noise.txt"), NOISE);
  await Deno.symlink(join(base, "key.txt"), join(root, "link-out.txt"));
  await Deno.symlink(base, join(root, "dir-out"));
  await Deno.symlink(join(root, ".env"), join(root, "link-hidden.txt"));
  await Deno.symlink(join(root, "app.js"), join(root, "link-in.js"));
  return {
    files: await StaticFiles.open(root, options),
    root,
    [Symbol.asyncDispose]: () => Deno.remove(base, { recursive: true }),
  };
}

interface Ask {
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

function ask(files: StaticFiles, path: string, init: Ask = {}): Promise<Response> {
  return files.respond(new Request("http://localhost/", init), path);
}

Deno.test("SF1 a file is answered with its type, validators and length", async () => {
  await using s = await site();
  const response = await ask(s.files, "/app.js");
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/javascript; charset=utf-8");
  assert.equal(response.headers.get("content-length"), "6");
  assert.equal(response.headers.get("cache-control"), "no-cache");
  assert.ok(response.headers.get("etag"));
  assert.ok(response.headers.get("last-modified"));
  assert.equal(await response.text(), "let x;");
  const unknown = await ask(s.files, "/none.unknowntype");
  assert.equal(unknown.headers.get("content-type"), "application/octet-stream");
  await unknown.body?.cancel();
});

const served: [path: string, text: string][] = [
  ["/", "<h1>home</h1>"],
  ["/with%20space%20%C3%A9.txt", "spaced"],
  ["/assets/", "assets"],
  ["/.well-known/security.txt", "contact"],
  ["/link-in.js", "let x;"],
  ["/empty.txt", ""],
];

Deno.test("files, folders' index pages and links inside the folder are served", async () => {
  await using s = await site();
  for (const [path, text] of served) {
    const response = await ask(s.files, path);
    assert.equal(response.status, 200, path);
    assert.equal(await response.text(), text, path);
  }
});

const tricks = [
  "/../key.txt",
  "/..%2fkey.txt",
  "/%2e%2e/key.txt",
  "/%2e%2e%2fkey.txt",
  "/assets/../../key.txt",
  "/assets/..%5c..%5ckey.txt",
  "/..\\key.txt",
  "/assets%2findex.html",
  "/assets%5cindex.html",
  "//key.txt",
  "//etc/passwd",
  "/assets//index.html",
  "/%00",
  "/app.js%00.html",
  "/app.js%0a",
  "/%ff",
  "/%",
  "/%c0%ae%c0%ae/key.txt",
  "/.env",
  "/%2eenv",
  "/.git/config",
  "/.git/",
  "/assets/.hidden",
  "/.",
  "/..",
  "/...",
  "/./app.js",
  "/link-out.txt",
  "/link-hidden.txt",
  "/dir-out/key.txt",
  "/dir-out/public-secret/key.txt",
  "/C:/key.txt",
  "/app.js::$DATA",
  `/${"a".repeat(300)}.js`,
  "key.txt",
];

Deno.test("no path leads out of the folder or to a hidden file", async () => {
  await using s = await site();
  for (const path of tricks) {
    const response = await ask(s.files, path);
    assert.ok(!(await response.text()).includes("SECRET"), path);
    // A link out of the folder counts as missing. "/dir-out/..." is requested without a browser's Accept header.
    assert.equal(response.status, 404, path);
  }
});

Deno.test("SF2 navigation to an unknown path gets index.html, a missing script 404", async () => {
  await using s = await site();
  for (
    const [path, accept, status] of [
      ["/users/7", "*/*", 200],
      ["/users/7/", "*/*", 200],
      ["/users/ann.lee", "text/html,*/*", 200],
      ["/missing.js", "*/*", 404],
      ["/assets/missing.png", "image/png", 404],
      ["/assets/empty/", "text/html", 200],
      ["/.hidden", "text/html", 404],
      ["/..%2f", "text/html", 404],
    ] as const
  ) {
    const response = await ask(s.files, path, { headers: { accept } });
    assert.equal(response.status, status, path);
    if (status === 200) assert.equal(await response.text(), "<h1>home</h1>", path);
    else await response.body?.cancel();
  }
});

Deno.test("without client routes only files are served", async () => {
  await using s = await site({ clientRoutes: false });
  const response = await ask(s.files, "/users/7", { headers: { accept: "text/html" } });
  assert.equal(response.status, 404);
});

Deno.test("a folder without its slash is redirected, keeping the query", async () => {
  await using s = await site();
  const response = await s.files.respond(new Request("http://localhost/assets?a=1"), "/assets");
  assert.equal(response.status, 307);
  assert.equal(response.headers.get("location"), "/assets/?a=1");
});

Deno.test("a copy that is still current is answered with 304", async () => {
  await using s = await site();
  const first = await ask(s.files, "/app.js", { method: "HEAD" });
  const etag = first.headers.get("etag") ?? "";
  const modified = first.headers.get("last-modified") ?? "";
  for (
    const [headers, status] of [
      [{ "if-none-match": etag }, 304],
      [{ "if-none-match": `"x", W/${etag}` }, 304],
      [{ "if-none-match": "*" }, 304],
      [{ "if-none-match": '"x"' }, 200],
      [{ "if-none-match": '"x"', "if-modified-since": modified }, 200],
      [{ "if-modified-since": modified }, 304],
      [{ "if-modified-since": new Date(0).toUTCString() }, 200],
      [{ "if-modified-since": "not a date" }, 200],
    ] as [Record<string, string>, number][]
  ) {
    const response = await ask(s.files, "/app.js", { headers });
    assert.equal(response.status, status, JSON.stringify(headers));
    if (status === 304) assert.equal(response.headers.get("etag"), etag);
    assert.equal(await response.text(), status === 304 ? "" : "let x;");
  }
});

Deno.test("an edited file has another ETag", async () => {
  await using s = await site();
  const before = (await ask(s.files, "/app.js", { method: "HEAD" })).headers.get("etag");
  await Deno.writeTextFile(join(s.root, "app.js"), "let y2;");
  assert.notEqual((await ask(s.files, "/app.js", { method: "HEAD" })).headers.get("etag"), before);
});

Deno.test("HEAD has the headers of GET and no body", async () => {
  await using s = await site();
  const response = await ask(s.files, "/app.js", { method: "HEAD", headers: { range: "bytes=0-1" } });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-length"), "6");
  assert.equal(response.body, null);
});

Deno.test("methods that write are refused with 405, even without a file", async () => {
  await using s = await site();
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
    const response = await ask(s.files, "/nothing", { method });
    assert.equal(response.status, 405, method);
    assert.equal(response.headers.get("allow"), "GET, HEAD");
    await response.body?.cancel();
  }
});

Deno.test("a part of a large file is answered with 206, one outside it with 416", async () => {
  await using s = await site();
  const part = await ask(s.files, "/assets/big.bin", { headers: { range: "bytes=100003-300002" } });
  assert.equal(part.status, 206);
  assert.equal(part.headers.get("content-range"), "bytes 100003-300002/500000");
  assert.equal(part.headers.get("content-length"), "200000");
  assert.equal(await part.text(), "3456789012".repeat(20_000));
  const beyond = await ask(s.files, "/assets/big.bin", { headers: { range: "bytes=500000-" } });
  assert.equal(beyond.status, 416);
  assert.equal(beyond.headers.get("content-range"), "bytes */500000");
});

Deno.test("If-Range with another validator returns the complete file", async () => {
  await using s = await site();
  const etag = (await ask(s.files, "/app.js", { method: "HEAD" })).headers.get("etag") ?? "";
  for (const [ifRange, status] of [[etag, 206], ['"old"', 200]] as const) {
    const headers = { range: "bytes=0-2", "if-range": ifRange };
    const response = await ask(s.files, "/app.js", { headers });
    assert.equal(response.status, status);
    await response.body?.cancel();
  }
});

Deno.test("a file is closed when the client disconnects during the response", async () => {
  await using s = await site();
  const response = await ask(s.files, "/assets/big.bin");
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  // The resource sanitizer fails this test if the file were still open.
});

Deno.test("a static folder that is missing or a file stops the start", async () => {
  await using s = await site();
  for (const path of [join(s.root, "nowhere"), join(s.root, "app.js")]) {
    await assert.rejects(StaticFiles.open(path, { clientRoutes: true }), StartError);
  }
});

/** The text of an answer, unpacked. */
async function textOf(response: Response): Promise<string> {
  const coding = response.headers.get("content-encoding");
  if (coding === null || response.body === null) return await response.text();
  const unpacking = new DecompressionStream(coding === "br" ? "brotli" as "gzip" : "gzip");
  return await new Response(response.body.pipeThrough(unpacking)).text();
}

Deno.test("SF5 a file is compressed in an encoding the client accepts, each with its own ETag", async () => {
  await using s = await site();
  const etags = new Map<string | null, string>();
  for (
    const [accepted, coding] of [
      ["gzip, deflate, br, zstd", "br"],
      ["BR", "br"],
      ["gzip", "gzip"],
      ["*", "br"],
      ["br;q=0.1, gzip;q=0.9", "gzip"],
      ["br;q=0, *", "gzip"],
      ["identity;q=1, *;q=0", null],
      ["deflate", null],
      ["br;q=", null],
      ["", null],
    ] as const
  ) {
    const response = await ask(s.files, "/large.js", { headers: { "accept-encoding": accepted } });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-encoding"), coding, accepted);
    assert.equal(response.headers.get("vary"), "Accept-Encoding", accepted);
    assert.equal(response.headers.get("content-type"), "text/javascript; charset=utf-8");
    const length = Number(response.headers.get("content-length"));
    assert.ok(
      coding === null ? length === LARGE.length : length < LARGE.length / 10,
      `${accepted} ${length}`,
    );
    assert.equal(await textOf(response), LARGE, accepted);
    const etag = response.headers.get("etag") ?? "";
    assert.equal(etags.get(coding) ?? etag, etag);
    etags.set(coding, etag);
  }
  assert.equal(new Set(etags.values()).size, 3);
});

Deno.test("SF5 small, already compressed and incompressible files are sent unchanged", async () => {
  await using s = await site();
  const headers = { "accept-encoding": "br" };
  for (const [path, text] of [["/app.js", "let x;"], ["/photo.png", LARGE], ["/noise.txt", NOISE]] as const) {
    for (const _twice of [1, 2]) {
      const response = await ask(s.files, path, { headers });
      assert.equal(response.headers.get("content-encoding"), null, path);
      assert.equal(response.headers.get("vary"), path === "/photo.png" ? null : "Accept-Encoding");
      const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
      assert.deepEqual(await response.bytes(), bytes, path);
    }
  }
});

Deno.test("SF5 a copy is current by the ETag of a coding that the client still accepts", async () => {
  await using s = await site();
  const etagOf = async (accepted: string) =>
    (await ask(s.files, "/large.js", { method: "HEAD", headers: { "accept-encoding": accepted } })).headers
      .get("etag") ?? "";
  const [br, gzip, whole] = [await etagOf("br"), await etagOf("gzip"), await etagOf("")];
  for (
    const [accepted, etag, status] of [
      ["br, gzip", br, 304],
      ["br, gzip", `W/${gzip}`, 304],
      ["br", whole, 304],
      ["gzip", br, 200],
      ["", br, 200],
      ["", whole, 304],
    ] as const
  ) {
    const headers = { "accept-encoding": accepted, "if-none-match": etag };
    const response = await ask(s.files, "/large.js", { headers });
    assert.equal(response.status, status, `${accepted} ${etag}`);
    assert.equal(response.headers.get("vary"), "Accept-Encoding");
    if (status === 304) assert.equal(response.headers.get("etag"), etag.replace("W/", ""));
    await response.body?.cancel();
  }
});

Deno.test("SF5 ranges are ranges of the file itself; If-Range with the ETag of a compressed copy returns the complete file", async () => {
  await using s = await site();
  const headers = { "accept-encoding": "br", range: "bytes=4-9" };
  const part = await ask(s.files, "/large.js", { headers });
  assert.equal(part.status, 206);
  assert.equal(part.headers.get("content-encoding"), null);
  assert.equal(part.headers.get("content-range"), `bytes 4-9/${LARGE.length}`);
  assert.equal(await part.text(), "number");
  const compressed = await ask(s.files, "/large.js", { headers: { "accept-encoding": "br" } });
  await compressed.body?.cancel();
  const ifRange = compressed.headers.get("etag") ?? "";
  const whole = await ask(s.files, "/large.js", { headers: { ...headers, "if-range": ifRange } });
  assert.equal(whole.status, 200);
  assert.equal(whole.headers.get("content-encoding"), "br");
  assert.equal(await textOf(whole), LARGE);
});

Deno.test("SF5 an edited file is compressed again", async () => {
  await using s = await site();
  const headers = { "accept-encoding": "gzip" };
  assert.equal(await textOf(await ask(s.files, "/large.js", { headers })), LARGE);
  await Deno.writeTextFile(join(s.root, "large.js"), `${LARGE}// edited`);
  assert.equal(await textOf(await ask(s.files, "/large.js", { headers })), `${LARGE}// edited`);
});

Deno.test("SF5 many clients share one compressed copy, and with too many files at once they are sent unchanged", async () => {
  const copies = new CompressedCopies();
  const gates: PromiseWithResolvers<void>[] = [];
  const original = (key: string) => ({
    key,
    size: LARGE.length,
    async read() {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      await gate.promise;
      return new Blob([LARGE]).stream();
    },
  });
  const first = [copies.get(original("0"), "br"), copies.get(original("0"), "br")];
  const others = Array.from(
    { length: staticLimits.compressionsMax - 1 },
    (_, index) => copies.get(original(`${index + 1}`), "br"),
  );
  assert.equal(await copies.get(original("one more"), "br"), null);
  assert.equal(gates.length, staticLimits.compressionsMax);
  for (const gate of gates) gate.resolve();
  const [one, other] = await Promise.all(first);
  assert.ok(one !== null && one === other);
  for (const copy of await Promise.all(others)) assert.ok(copy !== null);
  const later = copies.get(original("one more"), "br");
  gates.at(-1)?.resolve();
  assert.ok(await later !== null);
});

Deno.test("SF5 copies are cached up to a limit, and those unused for longest are created again", async () => {
  const copies = new CompressedCopies();
  let made = 0;
  // Half of these bytes remain after compression, so few files reach the limit of bytes.
  const bytes = crypto.getRandomValues(new Uint8Array(65_536));
  const size = 4 * 1024 * 1024;
  const text = Array.from(bytes, (byte) => (byte & 15).toString(16)).join("").repeat(size / 65_536);
  const original = (key: string) => ({
    key,
    size,
    read() {
      made++;
      return Promise.resolve(new Blob([text]).stream());
    },
  });
  const { length = 0 } = await copies.get(original("0"), "gzip") ?? {};
  const fit = Math.floor(staticLimits.copiesBytesMax / length);
  for (let index = 1; index <= fit; index++) {
    await copies.get(original("0"), "gzip");
    await copies.get(original(`${index}`), "gzip");
  }
  assert.equal(made, fit + 1);
  await copies.get(original("0"), "gzip");
  assert.equal(made, fit + 1, "the one that was always asked for is kept");
  await copies.get(original("1"), "gzip");
  assert.equal(made, fit + 2, "the oldest one is made again");
});
