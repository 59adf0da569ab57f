import assert from "node:assert/strict";
import { HostGuard, RequestGate } from "../../mod/server/http/request_gate.ts";

const OPEN = { host: "0.0.0.0", publicUrl: null, allowedHosts: [], allowedOrigins: null };

function gate(config: Partial<ConstructorParameters<typeof RequestGate>[0]> = {}) {
  const logged: unknown[] = [];
  const gate = new RequestGate(
    { ...OPEN, ...config },
    (level, message, fields) => logged.push([level, message, fields]),
  );
  return { gate, logged };
}

type Gate = ReturnType<typeof gate>;

async function asked(
  { gate }: Gate,
  { host, path = "/api/query", origin }: {
    readonly host: string;
    readonly path?: string;
    readonly origin?: string;
  },
): Promise<string> {
  const headers = { host, ...(origin !== undefined && { origin }) };
  const admitted = gate.check(new Request(`http://${host}${path}`, { headers }));
  if (!(admitted instanceof Response)) return admitted.path;
  const { errorData: { code }, errorMessage } = await admitted.json();
  return `${admitted.status} ${code} ${errorMessage}`;
}

Deno.test("OR3 only hosts that an attacker cannot resolve to this server are accepted", () => {
  const guard = new HostGuard(["app.example.com", "*.apps.example.com", "syncline"]);
  const expected: Record<ReturnType<HostGuard["check"]>, readonly string[]> = {
    accepted: [
      ...["localhost", "LOCALHOST:3210", "localhost.", "a.localhost", "a.b.localhost:80"],
      ...["127.0.0.1", "10.1.2.3:3210", "[::1]:3210", "[fe80::1]", "127.1"],
      ...[
        "app.example.com",
        "App.Example.com:443",
        "app.example.com.",
        "a.apps.example.com",
        "syncline:3210",
      ],
    ],
    refused: [
      ...["evil.example", "localhost.evil.example", "xlocalhost", "127.0.0.1.evil.example"],
      ...[
        "example.com",
        "x.app.example.com",
        "apps.example.com",
        "aapps.example.com",
        "app.example.com..com",
      ],
    ],
    malformed: [
      ...["", "a b", "a/b", "a?b", "a#b", "u@localhost", "localhost:x", "localhost:123456", "[::1", "::1"],
      ...["localhost\\evil.example", "localhost,evil.example", `${"a".repeat(300)}.localhost`],
    ],
  };
  for (const [result, hosts] of Object.entries(expected)) {
    for (const host of [...hosts, ...hosts]) assert.equal(guard.check(host), result, host);
  }
});

Deno.test("OR3 the error for a rejected host names the option that allows it, once in the log; health accepts any host", async () => {
  const guarded = gate({ publicUrl: "https://app.example.com", allowedHosts: ["inside"] });
  for (const host of ["app.example.com", "inside:3210", "localhost"]) {
    assert.equal(await asked(guarded, { host }), "/api/query");
  }
  for (const path of ["/api/query", "/", "/_/", "/metrics", "/%61pi/query", "/api/health/x"]) {
    const refusal = await asked(guarded, { host: "evil.example:3210", path });
    assert.match(refusal, /^421 host_not_allowed .* --allow-host evil\.example, /);
  }
  for (const path of ["/api/health", "/api/health/ready"]) {
    assert.equal(await asked(guarded, { host: "balancer.internal", path }), path);
  }
  assert.match(await asked(guarded, { host: "balancer.internal", path: "/%zz" }), /^400 bad_request/);
  assert.deepEqual(guarded.logged.length, 1);
  for (let i = 0; i < 100; i++) await asked(guarded, { host: `h${i}.example` });
  assert.equal(guarded.logged.length, 20, "a flood of names does not fill the log");
});

Deno.test("OR3 a page whose name was rebound to this server is not its own page", async () => {
  const guarded = gate({ allowedOrigins: [] });
  const rebound = { host: "evil.example:3210", origin: "http://evil.example:3210" };
  assert.match(await asked(guarded, rebound), /^421/);
  assert.equal(
    await asked(guarded, { host: "localhost:3210", origin: "http://localhost:3210" }),
    "/api/query",
  );
});

Deno.test("OR2 the origin check uses the router's path, in any spelling", async () => {
  const guarded = gate({ allowedOrigins: [] });
  const origin = "https://evil.example";
  for (
    const path of ["/api/query", "/%61pi/query", "/api/%73ync", "/x/%2e%2e/api/query", "/\\..\\api", "/./api"]
  ) {
    assert.match(await asked(guarded, { host: "localhost", path, origin }), /^403 origin_not_allowed/, path);
  }
  assert.equal(await asked(guarded, { host: "localhost", path: "/page", origin }), "/page");
});

Deno.test("HP2 a request whose URL contains another host than its Host header is refused", () => {
  const { gate: guard } = gate();
  const request = new Request("http://evil.example/api/query", { headers: { host: "localhost" } });
  const refused = guard.check(request);
  assert.ok(refused instanceof Response && refused.status === 400);
});
