import assert from "node:assert/strict";
import { OriginGuard } from "../../mod/server/http/request_gate.ts";
import { until } from "../support/waiting.ts";
import { startTestServer } from "../auth/server/test_server.ts";

Deno.test("OR2 pages of other origins than the allowed ones are refused, sockets included, and responses name their page", async (t) => {
  await using server = await startTestServer({ config: { allowedOrigins: ["https://app.example.com"] } });
  const call = (origin: string | null, init: RequestInit = {}) =>
    fetch(`${server.url}/api/query`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(origin !== null && { Origin: origin }) },
      body: JSON.stringify({ path: "none", args: {} }),
      ...init,
    });
  const cases: readonly (readonly [string | null, number, string | null])[] = [
    ["https://app.example.com", 404, "https://app.example.com"],
    [new URL(server.url).origin, 404, new URL(server.url).origin],
    [null, 404, null],
    ["https://evil.example.com", 403, null],
    ["https://app.example.com.evil.com", 403, null],
    ["http://app.example.com", 403, null],
    ["null", 403, null],
  ];
  for (const [origin, status, allowed] of cases) {
    const response = await call(origin);
    const { errorData } = await response.json();
    assert.deepEqual([response.status, response.headers.get("access-control-allow-origin")], [
      status,
      allowed,
    ]);
    assert.equal(response.headers.get("access-control-allow-credentials"), null);
    assert.equal(errorData?.code, status === 403 ? "origin_not_allowed" : undefined, `${origin}`);
  }
  const preflight = await fetch(`${server.url}/api/query`, {
    method: "OPTIONS",
    headers: { "Origin": "https://evil.example.com", "Access-Control-Request-Method": "POST" },
  });
  await preflight.body?.cancel();
  assert.deepEqual([preflight.status, preflight.headers.get("access-control-allow-origin")], [403, null]);
  for (
    const [origin, status] of [["https://evil.example.com", 403], ["https://app.example.com", 426]] as const
  ) {
    const socket = await fetch(`${server.url}/api/sync`, { headers: { Origin: origin } });
    await socket.body?.cancel();
    assert.equal(socket.status, status, `the handshake of ${origin}`);
  }
  const page = await fetch(`${server.url}/_/about`, { headers: { Origin: "https://evil.example.com" } });
  await page.body?.cancel();
  assert.equal(page.status, 200, "what is no API is for any page");

  await t.step("OR2 sockets of allowed pages are accepted, and the server continues", async () => {
    const address = `${server.url.replace("http", "ws")}/api/sync`;
    for (const origin of ["https://app.example.com", new URL(server.url).origin, null]) {
      const headers = origin === null ? {} : { Origin: origin };
      // The types of the platform know no headers here.
      const socket = new WebSocket(address, { headers } as unknown as string[]);
      await until(() => socket.readyState !== WebSocket.CONNECTING);
      assert.equal(socket.readyState, WebSocket.OPEN, `the socket of ${origin}`);
      socket.close();
      await until(() => socket.readyState === WebSocket.CLOSED);
    }
    const health = await fetch(`${server.url}/api/health`);
    assert.equal((await health.json()).status, "ok");
  });
});

Deno.test("OR2 with a proxy the server's own pages have its public address", () => {
  const guard = new OriginGuard({ allowed: [], publicUrl: "https://api.example.com" });
  assert.equal(guard.refuses("https://api.example.com", "127.0.0.1:3210"), false);
  assert.equal(guard.refuses("http://127.0.0.1:3210", "127.0.0.1:3210"), true);
});

Deno.test("OR2 the server's own pages are recognized however the host is written", () => {
  const guard = new OriginGuard({ allowed: [], publicUrl: null });
  const own = [
    ["http://localhost:3210", "LocalHost:3210"],
    ["http://localhost", "localhost:80"],
    ["https://app.example.com", "app.example.com:443"],
    ["http://[::1]:3210", "[0:0:0:0:0:0:0:1]:3210"],
  ] as const;
  for (const [origin, host] of own) assert.equal(guard.refuses(origin, host), false, `${origin} ${host}`);
  const others = [
    ["http://localhost:3211", "localhost:3210"],
    ["http://localhost", "localhost:443"],
    ["https://app.example.com", "app.example.com:80"],
    ["null", "localhost"],
    ["", "localhost"],
    ["file://", "localhost"],
    ["file:///", "localhost"],
    ["http://localhost.evil.example", "localhost"],
  ] as const;
  for (const [origin, host] of others) assert.equal(guard.refuses(origin, host), true, `${origin} ${host}`);
});
