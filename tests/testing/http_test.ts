/** `server.fetch` of a test server returns the same answers as a real server. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTestServer } from "syncline/test";
import { httpLimits } from "../../mod/limits.ts";
import { routeLimits } from "../../mod/functions/limits.ts";
import { startBackend } from "../../mod/server/backend.ts";
import { Server } from "../../mod/server/server.ts";
import { testConfig } from "../server/support/fake_backend.ts";
import { TempFolder } from "../support/temp_folder.ts";

const functionsDir = new URL("../functions/http/functions", import.meta.url);

/** Requests to both. */
const REQUESTS: readonly (readonly [path: string, init?: RequestInit])[] = [
  ["/who?x=1"],
  ["/who", { method: "HEAD" }],
  ["/who", { headers: { Authorization: "Basic abc", Connection: "close, X-Hop", "X-Hop": "1" } }],
  ["/who", { headers: { Authorization: "Bearer not.a.token" } }],
  ["/who", { headers: { "X-Long": "x".repeat(routeLimits.headerCharsMax / 8) } }],
  ["/who", { method: "PUT", body: "nobody takes it" }],
  ["/echo", { method: "POST", body: "some bytes", headers: { "Content-Type": "text/plain" } }],
  ["/notes", { method: "POST", body: "a note" }],
  ["/throw"],
  ["/throw?user"],
  ["/nothing"],
  ["/empty", { method: "DELETE" }],
  ["/assets/a%20b/c.js"],
  ["/"],
  ["/no/such/page"],
  ["/no/such/page", { method: "HEAD" }],
  ["/api"],
  ["/api/nothing"],
  ["/api/storage/nothing"],
  ["/api/query", { method: "OPTIONS", headers: { "Access-Control-Request-Headers": "authorization, x-a" } }],
  ["/api/query"],
  ["/api/query", { method: "POST", body: '{"path":"notes:texts","args":{}}' }],
  ["/api/query", { method: "POST", body: '{"path":"notes:nope","args":{}}' }],
  ["/api/query", { method: "POST", body: "{}" }],
  ["/api/mutation", { method: "POST", body: '{"path":"notes:add","args":{"text":"x"}}' }],
  ["/api/action", { method: "POST", body: "{}", headers: { Authorization: "Bearer not-a-token" } }],
  ["/api/query", { method: "POST", body: "x".repeat(httpLimits.callBodyBytesMax + 1) }],
];

/** Of the connection and the moment. */
const OF_THE_WAY = ["date", "connection", "vary", "content-length", "content-encoding", "transfer-encoding"];

async function seen(response: Response, origin: string): Promise<unknown> {
  const headers = [...response.headers].filter(([name]) => !OF_THE_WAY.includes(name))
    .map(([name, value]) => [name, value.replace(/^hn?\w{9,}$/, "an id")]);
  const text = (await response.text()).replaceAll(origin, "");
  // Headers that the network's own client adds to a request are not compared.
  const body = text.replace(/"headers":\[.*\]/, "");
  return { status: response.status, headers, body };
}

for (const dev of [true, false]) {
  Deno.test(`DV7 a test server answers requests as a real one does, ${dev ? "with --dev" : "in production"}`, async () => {
    await using folder = new TempFolder();
    await using test = await createTestServer({ functionsDir, dev });
    const real = await Server.start({
      config: testConfig({
        dataDir: join(folder.path, "data"),
        functionsDir: fileURLToPath(functionsDir),
        dev,
      }),
      log: () => {},
      startBackend,
      drainMs: 100,
    });
    try {
      for (const [path, init] of REQUESTS) {
        const ofReal = await fetch(`${real.url}${path}`, { ...init, redirect: "manual" });
        const ofTest = await test.fetch(path, init);
        assert.deepEqual(
          await seen(ofTest, "http://test.invalid"),
          await seen(ofReal, real.url),
          `${init?.method ?? "GET"} ${path}`,
        );
      }
    } finally {
      await real.stop();
    }
  });
}

const PAGE = "https://app.example.com";
const from = (origin: string, init: RequestInit = {}) => ({
  ...init,
  headers: { ...init.headers, Origin: origin },
});
const asked = { method: "OPTIONS", headers: { "Access-Control-Request-Method": "POST" } };
const call = { method: "POST", body: '{"path":"notes:texts","args":{}}' };
const large = { method: "POST", body: new Uint8Array(2_000) };

/** Requests to both when pages of one origin may use the API, and files have at most 1000 bytes. */
const BOUNDED: readonly (readonly [path: string, init?: RequestInit])[] = [
  ["/api/query", call],
  ["/api/query", from(PAGE, call)],
  ["/api/query", from("https://other.example.com", call)],
  ["/api/query", from("null", call)],
  ["/api/query", from(PAGE, asked)],
  ["/api/query", from("https://other.example.com", asked)],
  ["/api/storage/nothing", from(PAGE)],
  ["/api/nothing", from("https://other.example.com")],
  ["/who", from("https://other.example.com", { method: "HEAD" })],
  ["/no/such/page", from("https://other.example.com")],
  ["/api/storage/upload", from(PAGE, large)],
];

Deno.test("DV7 pages of other origins and large files are refused as by a real server", async () => {
  await using folder = new TempFolder();
  await using test = await createTestServer({ functionsDir, allowOrigins: [PAGE], uploadMaxBytes: 1_000 });
  const real = await Server.start({
    config: testConfig({
      dataDir: join(folder.path, "data"),
      functionsDir: fileURLToPath(functionsDir),
      dev: true,
      allowedOrigins: [PAGE],
    }),
    log: () => {},
    startBackend,
    drainMs: 100,
  });
  try {
    for (const [path, init] of BOUNDED) {
      const [ofReal, ofTest] = [await fetch(`${real.url}${path}`, init), await test.fetch(path, init)];
      assert.equal(ofTest.headers.get("vary"), varyOf(ofReal), path);
      assert.deepEqual(await seen(ofTest, "http://test.invalid"), await seen(ofReal, real.url), path);
    }
    // The page's own server is the one that a request names.
    const own = from("http://test.invalid", call);
    assert.deepEqual(await (await test.fetch("/api/query", own)).json(), {
      status: "success",
      value: [],
      logLines: [],
    });
    const ofReal = await fetch(`${real.url}/api/query`, from(real.url, call));
    assert.equal((await ofReal.json()).status, "success");
  } finally {
    await real.stop();
  }
  const target = await test.run((ctx) => ctx.storage.generateUploadUrl());
  await assert.rejects(test.upload(target, new Blob([large.body])), { code: "file_too_large" });
  await assert.rejects(createTestServer({ functionsDir, allowOrigins: ["app.example.com"] }), TypeError);
});

/** That of the network's coding is not compared. */
function varyOf({ headers }: Response): string | null {
  const names = (headers.get("vary") ?? "").split(/, */).filter((name) =>
    name !== "" && name !== "Accept-Encoding"
  );
  return names.length === 0 ? null : names.join(", ");
}

Deno.test("DV7 a caller's requests carry its token; a session that has ended is refused", async () => {
  await using server = await createTestServer({ functionsDir });
  const ada = await server.asUser("Ada");
  assert.equal((await (await ada.fetch("/who")).json()).userId, ada.userId);
  assert.equal((await (await server.fetch("/who")).json()).userId, null);
  server.endSession(ada);
  const refused = await ada.fetch("/who");
  assert.deepEqual([refused.status, (await refused.json()).errorData.code], [401, "invalid_token"]);
});

Deno.test("DV7 an aborted body fails for its reader, and its status remains", async () => {
  await using server = await createTestServer({ functionsDir });
  const response = await server.fetch("/breaks");
  assert.equal(response.status, 200);
  await assert.rejects(response.text(), /broken in the middle/);
});
