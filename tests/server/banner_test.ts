import assert from "node:assert/strict";
import { banner, reachedAt } from "../../mod/cli/serve_command.ts";
import { localUrl } from "../../mod/server/http/listen.ts";
import { testConfig } from "./support/fake_backend.ts";

Deno.test("the banner names address, functions and data, paths below the working folder in short", () => {
  const config = testConfig({ dataDir: "/srv/data", functionsDir: "/elsewhere/functions", staticDir: "/s" });
  const text = banner({ config, url: "http://127.0.0.1:3210", cwd: "/srv", setupLink: null });
  assert.match(text, /^ {2}app +http:\/\/127\.0\.0\.1:3210\/$/m);
  assert.match(text, /^ {2}dashboard +http:\/\/127\.0\.0\.1:3210\/_\/$/m);
  assert.match(text, /^ {2}functions +\/elsewhere\/functions$/m);
  assert.match(text, /^ {2}data +\.\/data$/m);
  assert.doesNotMatch(text, /example|two browser windows/);
});

Deno.test("the banner shows whether the example is served, and whether all addresses are served", () => {
  const config = testConfig({ dataDir: "/d", example: true, host: "0.0.0.0" });
  const text = banner({ config, url: "http://localhost:1", cwd: "/", setupLink: null });
  assert.match(text, /bundled example/);
  assert.match(text, /two browser windows/);
  assert.match(text, /all addresses of this machine/);
});

Deno.test("the banner shows that no app is deployed yet", () => {
  const config = testConfig({ dataDir: "/d", empty: true });
  assert.match(
    banner({ config, url: "http://127.0.0.1:1", cwd: "/", setupLink: null }),
    /^ {2}functions +none yet {2}\(deploy an app to this server\)$/m,
  );
});

Deno.test("localUrl is one a browser on this machine can open", () => {
  const cases = { "127.0.0.1": "127.0.0.1", "0.0.0.0": "localhost", "::": "localhost", "::1": "[::1]" };
  for (const [hostname, host] of Object.entries(cases)) {
    assert.equal(localUrl({ transport: "tcp", hostname, port: 80 }), `http://${host}:80`);
  }
});

Deno.test("the banner lists the addresses for other machines, and the documentation with --dev", () => {
  const interfaces = [
    { name: "lo", family: "IPv4", address: "127.0.0.1" },
    { name: "eth0", family: "IPv4", address: "192.168.1.7" },
    { name: "eth0", family: "IPv6", address: "fe80::1" },
    { name: "docker0", family: "IPv4", address: "172.17.0.1" },
  ] as const;
  const url = "http://localhost:3210";
  assert.deepEqual(reachedAt({ host: "127.0.0.1", url, interfaces }), []);
  const others = reachedAt({ host: "0.0.0.0", url, interfaces });
  assert.deepEqual(others, ["http://192.168.1.7:3210"]);
  const config = testConfig({ dataDir: "/d", host: "0.0.0.0", dev: true });
  const text = banner({ config, url, cwd: "/", setupLink: null, reachedAt: others });
  assert.match(text, /^ {2}network +http:\/\/192\.168\.1\.7:3210\/$/m);
  assert.match(text, /^ {2}docs +http:\/\/localhost:3210\/_\/docs\/$/m);
});
