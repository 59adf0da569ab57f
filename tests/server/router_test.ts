import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MethodNotAllowedError, RateLimitedError, ServiceError } from "../../mod/errors.ts";
import { ClientModules } from "../../mod/server/http/client_modules.ts";
import { errorResponse } from "../../mod/kit/error_response.ts";
import { createRouter } from "../../mod/server/http/router.ts";
import { StaticFiles } from "../../mod/server/http/static_files.ts";
import { FakeBackend } from "./support/fake_backend.ts";

interface Routed extends AsyncDisposable {
  readonly app: ReturnType<typeof createRouter>;
  readonly logged: string[];
}

async function router(options = { frontend: true }): Promise<Routed> {
  const folder = await Deno.makeTempDir();
  for (const path of ["api", "_", "api/query"]) await Deno.mkdir(join(folder, path));
  for (const path of ["index.html", "api/secret.html", "_/secret.html", "metrics", "api/query/index.html"]) {
    await Deno.writeTextFile(join(folder, path), "STATIC");
  }
  const backend = new FakeBackend();
  const logged: string[] = [];
  const frontend = options.frontend ? await StaticFiles.open(folder, { clientRoutes: true }) : null;
  const app = createRouter({
    routes: backend.routes,
    acceptSocket: () => {
      throw new ServiceError("bad_request");
    },
    ts: () => backend.ts,
    appRoutes: backend.http.appRoutes,
    clientModules: new ClientModules(),
    dashboard: await StaticFiles.open(fileURLToPath(new URL("../../dashboard/public", import.meta.url)), {
      clientRoutes: false,
    }),
    frontend: () => frontend,
    log: (level, message) => logged.push(`${level} ${message}`),
  });
  return { app, logged, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
}

const html = { accept: "text/html" };

Deno.test("SF3 paths of the service are never answered with static files", async () => {
  await using r = await router();
  const paths = [
    "/api",
    "/api/",
    "/api/secret.html",
    "/api/nope",
    "/api/query",
    "/_/secret.html",
    "/_/nope",
    "/metrics",
  ];
  for (const path of paths) {
    const response = await r.app.request(path, { headers: html });
    const body = await response.text();
    assert.equal(response.status, 404, path);
    assert.equal(JSON.parse(body).errorData.code, "not_found", path);
    assert.equal(response.headers.get("cache-control"), "no-store", path);
  }
});

Deno.test("paths that only resemble the server's are not reserved", async () => {
  await using r = await router();
  for (const path of ["/apix", "/_x", "/metricsx", "/x/api/query", "/API/query"]) {
    const response = await r.app.request(path, { headers: html });
    assert.equal(await response.text(), "STATIC", path);
  }
  for (const path of ["/api%2fsecret.html", "/%2e%2e/api/secret.html", "//api/secret.html"]) {
    const response = await r.app.request(path, { headers: html });
    assert.ok(!(await response.text()).includes("STATIC"), path);
  }
});

Deno.test("without a frontend the first page is the dashboard and unknown paths are 404", async () => {
  await using r = await router({ frontend: false });
  assert.equal((await r.app.request("/")).headers.get("location"), "/_/");
  const response = await r.app.request("/x", { headers: html });
  assert.equal(response.status, 404);
  assert.equal((await response.json()).errorData.code, "not_found");
});

Deno.test("health reports the newest ts and is not cached", async () => {
  await using r = await router();
  const response = await r.app.request("/api/health");
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { status: "ok", ts: 42 });
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.equal(response.headers.get("syncline-request"), null);
  const trial = await r.app.request("/api/health", { headers: { "Syncline-Request": "?" } });
  assert.equal(trial.headers.get("syncline-request"), "recognised");
  assert.match(trial.headers.get("access-control-expose-headers") ?? "", /Syncline-Request/);
  const head = await r.app.request("/api/health", { method: "HEAD" });
  assert.equal(head.status, 200);
  assert.equal(head.body, null);
});

Deno.test("the socket's address refuses plain HTTP with 426", async () => {
  await using r = await router();
  const response = await r.app.request("/api/sync");
  assert.equal(response.status, 426);
  assert.equal(response.headers.get("upgrade"), "websocket");
  assert.equal((await response.json()).errorData.code, "upgrade_required");
});

Deno.test("a handshake with another version gets the supported one", async () => {
  await using r = await router();
  for (const version of [{}, { "sec-websocket-version": "8" }]) {
    const response = await r.app.request("/api/sync", { headers: { upgrade: "websocket", ...version } });
    assert.equal(response.status, 426);
    assert.equal(response.headers.get("sec-websocket-version"), "13");
  }
});

Deno.test("a handshake that is not valid is refused with 400", async () => {
  await using r = await router();
  const response = await r.app.request("/api/sync", {
    headers: { upgrade: "WebSocket", "sec-websocket-version": "13" },
  });
  assert.equal(response.status, 400);
  assert.equal((await response.json()).errorData.code, "bad_request");
});

Deno.test("an error in a handler is logged and returned as Server Error", async () => {
  await using r = await router();
  const response = await r.app.request("/api/mutation", { method: "POST" });
  assert.equal(response.status, 500);
  assert.deepEqual(await response.json(), {
    status: "error",
    errorMessage: "Server Error",
    errorData: { code: "internal", data: null },
  });
  assert.deepEqual(r.logged, ["error A request failed"]);
});

Deno.test("a request with another method gets the allowed ones", () => {
  const response = errorResponse(new MethodNotAllowedError("POST, OPTIONS"));
  assert.deepEqual([response.status, response.headers.get("allow")], [405, "POST, OPTIONS"]);
});

Deno.test("the response to a rate limited request has the time to retry, in whole seconds", () => {
  const response = errorResponse(new RateLimitedError(1_200));
  assert.deepEqual([response.status, response.headers.get("retry-after")], [429, "2"]);
});

Deno.test("OR1 apps on other origins may call, with a token but without cookies", async () => {
  await using r = await router();
  const preflight = await r.app.request("/api/query", {
    method: "OPTIONS",
    headers: {
      "origin": "https://app.example.com",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type",
    },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-origin"), "*");
  assert.match(preflight.headers.get("access-control-allow-methods") ?? "", /POST/);
  assert.match(preflight.headers.get("access-control-allow-headers") ?? "", /authorization/);
  assert.equal(preflight.headers.get("access-control-allow-credentials"), null);
  for (const path of ["/api/query", "/api/mutation", "/api/nope"]) {
    const response = await r.app.request(path, {
      method: "POST",
      headers: { origin: "https://app.example.com" },
    });
    assert.equal(response.headers.get("access-control-allow-origin"), "*", path);
    await response.body?.cancel();
  }
});

Deno.test("responses forbid browsers to guess types, and the dashboard cannot be framed", async () => {
  await using r = await router();
  for (const path of ["/", "/api/health", "/_/", "/_/client.js", "/api/nope"]) {
    const response = await r.app.request(path);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff", path);
    assert.equal(response.headers.get("strict-transport-security"), null, path);
    await response.body?.cancel();
  }
  const dashboard = await r.app.request("/_/");
  assert.equal(dashboard.headers.get("x-frame-options"), "DENY");
  assert.match(dashboard.headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
  assert.match(await dashboard.text(), /<title>Syncline<\/title>/);
});

Deno.test("the dashboard is found without its slash, and its files are served", async () => {
  await using r = await router();
  const bare = await r.app.request("/_");
  assert.equal(bare.status, 302);
  assert.equal(bare.headers.get("location"), "/_/");
  for (const path of ["/_/account.css", "/_/built/app.js", "/_/icon.svg"]) {
    const response = await r.app.request(path);
    assert.equal(response.status, 200, path);
    await response.body?.cancel();
  }
  const { version } = JSON.parse(await Deno.readTextFile(new URL("../../deno.json", import.meta.url)));
  assert.deepEqual(await (await r.app.request("/_/about")).json(), { name: "Syncline", version });
});
