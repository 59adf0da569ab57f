/** HTTP on a whole server: routes and calls of the app, precedence of routes, streaming bodies, and disconnects. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { type ServeConfig } from "../../../mod/config/config.ts";
import { httpLimits } from "../../../mod/limits.ts";
import { startBackend } from "../../../mod/server/backend.ts";
import { Server } from "../../../mod/server/server.ts";
import { testConfig } from "../../server/support/fake_backend.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { pause, until } from "../../support/waiting.ts";

const FUNCTIONS = fileURLToPath(new URL("functions", import.meta.url));

interface Served extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly logged: string[];
  post(path: string, body: unknown): Promise<Record<string, unknown>>;
}

async function serve(changes: Partial<ServeConfig> = {}): Promise<Served> {
  const folder = await Deno.makeTempDir({ prefix: "syncline-http-" });
  const logged: string[] = [];
  const server = await Server.start({
    config: testConfig({ dataDir: join(folder, "data"), functionsDir: FUNCTIONS, ...changes }),
    log: (level, message) => logged.push(`${level} ${message}`),
    startBackend,
    drainMs: 100,
  });
  return {
    url: server.url,
    port: Number(new URL(server.url).port),
    logged,
    async post(path, body) {
      const response = await fetch(`${server.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return await response.json();
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

async function notes({ post }: Served): Promise<string[]> {
  return (await post("/api/query", { path: "notes:texts", args: {} }))["value"] as string[];
}

Deno.test("routes of an app, end to end", async (t) => {
  await using staticDirFolder = new TempFolder();
  const staticDir = staticDirFolder.path;
  await Deno.writeTextFile(join(staticDir, "index.html"), "STATIC");
  await Deno.writeTextFile(join(staticDir, "who"), "STATIC who");
  await using served = await serve({ staticDir });
  const { url } = served;

  await t.step(
    "calls of a page, their errors and other responses of the server have the same common headers",
    async () => {
      const common = (response: Response) =>
        [
          "access-control-allow-origin",
          "access-control-expose-headers",
          "referrer-policy",
          "x-content-type-options",
        ]
          .map((name) => response.headers.get(name));
      const body = JSON.stringify({ path: "notes:texts", args: {} });
      const page = { Origin: "https://app.example.com" };
      // The router decodes the first of these paths and answers; the other one is answered before it.
      const [routed, atOnce] = await Promise.all(["%71uery", "query"].map(async (name) => {
        const response = await fetch(`${url}/api/${name}`, { method: "POST", body, headers: page });
        await response.body?.cancel();
        return new Map([...response.headers].filter(([header]) => header !== "date"));
      }));
      assert.deepEqual(atOnce, routed);
      const health = await fetch(`${url}/api/health`);
      await health.body?.cancel();
      assert(common(health).every((value) => value !== null));
      for (
        const [status, path, init] of [
          [200, "/api/query?unknown=1", { method: "POST", body, headers: page }],
          [404, "/api/query", { method: "POST", body: body.replace("texts", "nope"), headers: page }],
          [400, "/api/mutation", { method: "POST", body: "{", headers: page }],
          [401, "/api/action", { method: "POST", body, headers: { authorization: "Bearer nobody" } }],
          [413, "/api/query", { method: "POST", body: "x".repeat(httpLimits.callBodyBytesMax + 1) }],
          [405, "/api/query", { method: "GET" }],
        ] as const
      ) {
        const response = await fetch(`${url}${path}`, init);
        await response.body?.cancel();
        assert.deepEqual([response.status, common(response)], [status, common(health)], path);
      }
    },
  );

  await t.step("a route sets its own headers, and gets the request's", async () => {
    const response = await fetch(`${url}/who?x=1`, {
      headers: { "x-client": "yes", "cookie": "c=1", "authorization": "Basic abc" },
    });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("x-own"), "yes");
    assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
    assert.equal(response.headers.get("keep-alive"), null);
    assert.equal(response.headers.get("x-content-type-options"), null, "headers are the app's to say");
    const body = await response.json();
    assert.equal(body.url, `${url}/who?x=1`);
    assert.equal(body.userId, null);
    const headers = new Headers(body.headers);
    assert.equal(headers.get("x-client"), "yes");
    assert.equal(headers.get("cookie"), "c=1");
    assert.equal(headers.get("authorization"), "Basic abc");
  });

  await t.step(
    "routes take precedence over static files, other paths and methods continue to them",
    async () => {
      assert.notEqual(await (await fetch(`${url}/who`)).text(), "STATIC who");
      assert.equal(
        await (await fetch(`${url}/other`, { headers: { accept: "text/html" } })).text(),
        "STATIC",
      );
      assert.equal(await (await fetch(`${url}/assets/a/b.js`)).text(), "/assets/a/b.js");
      const wrongMethod = await fetch(`${url}/who`, { method: "PUT" });
      assert.equal(wrongMethod.status, 405);
      await wrongMethod.body?.cancel();
      assert.equal((await (await fetch(`${url}/api/health`)).json()).status, "ok");
    },
  );

  await t.step("HEAD has the head of GET", async () => {
    const response = await fetch(`${url}/who`, { method: "HEAD" });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("x-own"), "yes");
    assert.equal(await response.text(), "");
  });

  await t.step("a route runs mutations and queries", async () => {
    const response = await fetch(`${url}/notes`, { method: "POST", body: "first" });
    assert.equal(response.status, 201);
    assert.deepEqual(await response.json(), ["first"]);
  });

  await t.step("a response without a body", async () => {
    const response = await fetch(`${url}/empty`, { method: "DELETE" });
    assert.equal(response.status, 204);
    assert.equal(response.body, null);
  });

  await t.step("errors are 500 and hide their text, unless the app threw them for the caller", async () => {
    const hidden = await fetch(`${url}/throw`);
    assert.equal(hidden.status, 500);
    assert.deepEqual(await hidden.json(), {
      status: "error",
      errorMessage: "Server Error",
      errorData: null,
    });
    const shown = await fetch(`${url}/throw?user`);
    assert.equal(shown.status, 500);
    assert.deepEqual(await shown.json(), {
      status: "error",
      errorMessage: "I am a teapot",
      errorData: { code: "teapot", data: { spout: true } },
    });
    const nothing = await fetch(`${url}/nothing`);
    assert.equal(nothing.status, 500);
    await nothing.body?.cancel();
  });

  await t.step("bodies are streamed in both directions concurrently", async () => {
    const up = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
    const writer = up.writable.getWriter();
    const responding = fetch(`${url}/echo`, { method: "POST", body: up.readable });
    await writer.write(new Uint8Array([1, 2, 3]));
    const reader = (await responding).body?.getReader();
    assert(reader !== undefined);
    assert.deepEqual([...(await reader.read()).value ?? []], [1, 2, 3]);
    await writer.write(new Uint8Array([4]));
    assert.deepEqual([...(await reader.read()).value ?? []], [4]);
    await writer.close();
    assert.equal((await reader.read()).done, true);
  });

  await t.step("20 MB go through unchanged", async () => {
    const body = new Uint8Array(20_000_000);
    for (let i = 0; i < body.length; i += 65_536) crypto.getRandomValues(body.subarray(i, i + 65_536));
    const response = await fetch(`${url}/echo`, { method: "POST", body });
    assert.deepEqual(
      await crypto.subtle.digest("SHA-256", await response.arrayBuffer()),
      await crypto.subtle.digest("SHA-256", body),
    );
  });

  await t.step("a disconnecting client aborts the request, whose handler can still act", async () => {
    const response = await fetch(`${url}/ticks`);
    const reader = response.body?.getReader();
    const first = await reader?.read();
    // One of them, or several when this end was slow.
    assert.match(new TextDecoder().decode(first?.value), /^tick 0\n/);
    await reader?.cancel();
    await until(async () => (await notes(served)).includes("the client went away"));
  });

  await t.step("a client that does not read pauses the route instead of filling memory", async () => {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port: served.port });
    await conn.write(new TextEncoder().encode("GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    const made = async () => (await notes(served)).filter((text) => text.startsWith("made ")).length;
    // It pauses once every buffer in between is full.
    let before = -1;
    await until(async () => {
      await pause(300);
      const now = await made();
      const stands = now > 0 && now === before;
      before = now;
      return stands;
    });
    assert(before < 50, `${before} MB were made for nobody`);
  });

  await t.step("a response that breaks off does not look complete", async () => {
    const response = await fetch(`${url}/breaks`);
    await assert.rejects(response.arrayBuffer());
  });

  await t.step(
    "an invalid token of this server is refused, other tokens are left to the app",
    async () => {
      const own = await fetch(`${url}/who`, {
        headers: { authorization: "Bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA" },
      });
      assert.equal(own.status, 401);
      assert.equal((await own.json()).errorData.code, "invalid_token");
      const foreign = `Bearer ${btoa('{"alg":"RS256"}')}.${btoa('{"iss":"https://elsewhere"}')}.AAAA`
        .replaceAll("=", "");
      for (const authorization of [foreign, "Bearer opaque-secret", "Basic dTpw"]) {
        const response = await fetch(`${url}/who`, { headers: { authorization } });
        assert.equal(response.status, 200, authorization);
        assert.equal((await response.json()).userId, null);
      }
    },
  );

  await t.step("a signed-in user is identified by the token", async () => {
    const account = await served.post("/api/auth/signup", {
      email: "ada@example.com",
      password: "long enough",
    });
    const authorization = `Bearer ${account["accessToken"]}`;
    const response = await fetch(`${url}/who`, { headers: { authorization } });
    assert.equal((await response.json()).userId, account["userId"]);
  });
});
