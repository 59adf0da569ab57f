import assert from "node:assert/strict";
import { join } from "node:path";
import { StartError } from "../../mod/config/start_error.ts";
import { StaticFiles } from "../../mod/server/http/static_files.ts";

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
    // A link that leads out is as good as missing; "/dir-out/..." is asked for without a browser's Accept header.
    assert.equal(response.status, 404, path);
  }
});

Deno.test("SF2 a page the browser navigates to gets index.html, a missing script 404", async () => {
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

Deno.test("methods that would write are refused with 405, even where there is no file", async () => {
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

Deno.test("If-Range with another validator gets the whole file", async () => {
  await using s = await site();
  const etag = (await ask(s.files, "/app.js", { method: "HEAD" })).headers.get("etag") ?? "";
  for (const [ifRange, status] of [[etag, 206], ['"old"', 200]] as const) {
    const headers = { range: "bytes=0-2", "if-range": ifRange };
    const response = await ask(s.files, "/app.js", { headers });
    assert.equal(response.status, status);
    await response.body?.cancel();
  }
});

Deno.test("a file closes when the client goes away in the middle", async () => {
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
