import assert from "node:assert/strict";
import { join } from "node:path";
import { AuthConfigFile, presetParts, readAuthConfig } from "../../../mod/auth/mod.ts";
import { boundedFetch } from "../../../mod/auth/outgoing/bounded_fetch.ts";
import { externalLimits } from "../../../mod/auth/limits.ts";
import { TempFolder } from "../../support/temp_folder.ts";

const parts = presetParts({ now: () => 0, fetch: () => Promise.reject(new Error("nothing is asked for")) });
const app = { clientId: "app", clientSecret: { env: "SYNCLINE_SECRET" } };

function read(config: unknown, text = JSON.stringify(config)) {
  return readAuthConfig(text, {
    sources: {
      env: (name) => name === "SYNCLINE_SECRET" ? " shh \n" : undefined,
      readFile: (path) =>
        path === "empty"
          ? Promise.resolve("\n")
          : path === "secret"
          ? Promise.resolve("shh\n")
          : Promise.reject(new Error("No such file")),
    },
    parts,
  });
}

const faults: readonly (readonly [name: string, config: unknown, message: RegExp])[] = [
  ["OC1 a list", [], /expected object/],
  ["OC1 a field that does not exist", { provider: {} }, /provider/],
  ["OC1 a name with a slash", { providers: { "a/b": app } }, /^providers\.a\/b: /],
  [
    "OC1 a name in capitals",
    { providers: { GitHub: app } },
    /^providers\.GitHub: expected a name of lower-case letters/,
  ],
  [
    "OC1 the name of what every object has",
    { providers: { constructor: app } },
    /^providers\.constructor: unknown preset "constructor"/,
  ],
  [
    "OC1 a preset that does not exist",
    { providers: { x: { preset: "facebook", ...app } } },
    /^providers\.x\.preset: unknown preset "facebook", expected one of apple, discord/,
  ],
  [
    "OC1 no client",
    { providers: { github: { clientSecret: app.clientSecret } } },
    /^providers\.github\.clientId: /,
  ],
  [
    "OC1 a field that the preset does not have",
    { providers: { github: { ...app, tenant: "x" } } },
    /^providers\.github: .*tenant/,
  ],
  ["OC1 an issuer without https", {
    providers: { work: { preset: "oidc", ...app, issuer: "http://id.example.com" } },
  }, /^providers\.work\.issuer: expected an https URL/],
  ["OC1 an issuer with a password", {
    providers: { work: { preset: "oidc", ...app, issuer: "https://a:b@id.example.com" } },
  }, /^providers\.work\.issuer: /],
  ["OC1 a scope without openid", {
    providers: { work: { preset: "oidc", ...app, issuer: "https://id.example.com", scope: "email" } },
  }, /^providers\.work\.scope: /],
  ["OC1 a host that is an address", {
    providers: { work: { preset: "oidc", ...app, issuer: "https://id.example.com", hosts: ["https://x"] } },
  }, /^providers\.work\.hosts\.0: expected a host/],
  [
    "OC1 a tenant that is no id",
    { providers: { microsoft: { ...app, tenant: "common" } } },
    /^providers\.microsoft\.tenant: expected the id/,
  ],
  ["OC1 an endpoint without https", {
    providers: { github: { ...app, endpoints: { token: "http://evil" } } },
  }, /^providers\.github\.endpoints\.token: /],
  ["OC1 a key that is none", {
    providers: { apple: { clientId: "a", teamId: "t", keyId: "k", privateKey: { file: "secret" } } },
  }, /^providers\.apple\.privateKey: expected a PEM private key/],
  [
    "OC1 tokens for any audience",
    { issuers: [{ issuer: "https://id.example.com" }] },
    /^issuers\.0\.audience: /,
  ],
  [
    "OC1 no audience in the list",
    { issuers: [{ issuer: "https://id.example.com", audience: [] }] },
    /^issuers\.0\.audience/,
  ],
  ["OC1 an issuer twice", {
    issuers: ["a", "b"].map((audience) => ({ issuer: "https://id.example.com", audience })),
  }, /^issuers\.1\.issuer: is configured twice/],
  [
    "OC2 a secret in the file",
    { providers: { github: { ...app, clientSecret: "shh" } } },
    /^providers\.github\.clientSecret: .*this file must not contain secrets/,
  ],
  ["OC2 a variable that is not set", {
    providers: { github: { ...app, clientSecret: { env: "SYNCLINE_NONE" } } },
  }, /^providers\.github\.clientSecret: the variable SYNCLINE_NONE is not set/],
  [
    "OC2 a variable of another program",
    { providers: { github: { ...app, clientSecret: { env: "HOME" } } } },
    /^providers\.github\.clientSecret/,
  ],
  [
    "OC2 a file that is not there",
    { providers: { github: { ...app, clientSecret: { file: "none" } } } },
    /^providers\.github\.clientSecret: the file none cannot be read/,
  ],
  [
    "OC2 an empty file",
    { providers: { github: { ...app, clientSecret: { file: "empty" } } } },
    /^providers\.github\.clientSecret: the file empty is empty/,
  ],
];

Deno.test("OC1 OC2 a configuration that cannot be used is refused, and the message names the field", async (t) => {
  for (const [name, config, message] of faults) {
    await t.step(name, async () => {
      await assert.rejects(read(config), (error: Error) => {
        assert.equal(error.name, "AuthConfigError");
        assert.match(error.message, message);
        assert.ok(!error.message.includes("shh"));
        return true;
      });
    });
  }
  await assert.rejects(read(null, "{"), /it is not JSON/);
});

Deno.test("OC2 secrets are read from variables and files, without surrounding white space", async () => {
  const config = {
    $schema: "./schema.json",
    providers: { github: app, other: { preset: "github", clientId: "b", clientSecret: { file: "secret" } } },
    issuers: [{ issuer: "https://id.example.com", audience: "app" }],
  };
  const { providers, issuers } = await read(config);
  assert.deepEqual([...providers.keys()], ["github", "other"]);
  assert.deepEqual([...issuers.keys()], ["https://id.example.com"]);
  assert.deepEqual([...(await read({})).providers.keys()], []);
});

Deno.test("OC3 a changed file or secret applies without a restart, and an invalid one changes nothing", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = join(folder, "auth.json");
    const logged: string[] = [];
    const write = (names: readonly string[], secret = "a") =>
      Deno.writeTextFile(
        path,
        JSON.stringify({
          providers: Object.fromEntries(
            names.map((name) => [name, { preset: "github", clientId: "c", clientSecret: { file: secret } }]),
          ),
        }),
      );
    await Deno.writeTextFile(join(folder, "a"), "one");
    await write(["x"]);
    await using file = await AuthConfigFile.open({
      path,
      env: () => undefined,
      parts,
      log: (level, text) => logged.push(`${level} ${text}`),
    });
    const first = file.externalAuth;
    await file.look();
    assert.equal(file.externalAuth, first, "read again though nothing changed");
    await write(["x", "longer"]);
    await file.look();
    assert.deepEqual([...file.externalAuth.providers.keys()], ["x", "longer"]);
    await Deno.writeTextFile(join(folder, "a"), "another");
    const before = file.externalAuth;
    await file.look();
    assert.notEqual(file.externalAuth, before, "a new secret");
    const good = file.externalAuth;
    for (
      const broken of [
        "{",
        JSON.stringify({ providers: { x: {} } }),
        JSON.stringify({
          providers: { x: { preset: "github", clientId: "c", clientSecret: { file: "none" } } },
        }),
      ]
    ) {
      await Deno.writeTextFile(path, broken);
      await file.look();
      assert.equal(file.externalAuth, good);
    }
    assert.equal(logged.filter((line) => line.startsWith("error")).length, 3);
    await Deno.remove(path);
    await file.look();
    assert.equal(file.externalAuth, good);
    await write(["back"]);
    await file.look();
    assert.deepEqual([...file.externalAuth.providers.keys()], ["back"]);
    await Deno.writeTextFile(path, " ".repeat(externalLimits.configBytesMax + 1));
    await file.look();
    assert.deepEqual([...file.externalAuth.providers.keys()], ["back"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("OC1 a missing file prevents the start with its path", async () => {
  await assert.rejects(
    AuthConfigFile.open({ path: "/nowhere/auth.json", env: () => undefined, parts, log: () => {} }),
    /^AuthConfigError: Cannot use \/nowhere\/auth\.json: /,
  );
});

Deno.test({
  name: "OC1 an unreadable secret is reported with a fix",
  // Other systems have no file that no process may read.
  ignore: Deno.build.os !== "linux",
  async fn() {
    using folder = new TempFolder();
    const path = folder.at("auth.json");
    const clientSecret = { file: "/proc/self/environ" };
    await Deno.writeTextFile(
      path,
      JSON.stringify({ providers: { x: { preset: "github", clientId: "c", clientSecret } } }),
    );
    await assert.rejects(
      AuthConfigFile.open({ path, env: () => undefined, parts, log: () => {} }),
      /environ cannot be read: the server has no permission to read it: restart the server$/,
    );
  },
});

const refusedUrls: readonly (readonly [name: string, url: string])[] = [
  ["OC4 another host", "https://evil.example.com/"],
  ["OC4 another port", "https://id.example.com:8443/"],
  ["OC4 the host as user", "https://id.example.com@evil.example.com/"],
  ["OC4 a user and a password", "https://a:b@id.example.com/"],
  ["OC4 a host below", "https://x.id.example.com/"],
  ["OC4 no encryption", "http://id.example.com/"],
  ["OC4 an address of the network", "http://10.0.0.1/"],
  ["OC4 the machine's own metadata", "http://169.254.169.254/latest/meta-data"],
  ["OC4 this machine, which is not in the file", "http://127.0.0.1:9000/"],
  ["OC4 a file", "file:///etc/passwd"],
  ["OC4 data", "data:application/json,{}"],
  ["OC4 no URL", "id.example.com/keys"],
];

Deno.test("OC4 requests go to the configured hosts only", async (t) => {
  const sent: string[] = [];
  const fetch = boundedFetch({
    hosts: new Set(["id.example.com"]),
    fetch: (url) => {
      sent.push(String(url));
      return Promise.resolve(new Response("{}"));
    },
  });
  for (const [name, url] of refusedUrls) {
    await t.step(name, () => assert.rejects(fetch(url), { name: "OutgoingError" }).then(() => {}));
  }
  assert.deepEqual(sent, []);
  assert.equal(await (await fetch("https://id.example.com/keys")).text(), "{}");
});

Deno.test("OC4 requests to one provider have a concurrency limit", async () => {
  const waiting: (() => void)[] = [];
  const fetch = boundedFetch({
    hosts: new Set(["id.example.com"]),
    fetch: () => new Promise((resolve) => waiting.push(() => resolve(new Response("{}")))),
  });
  const all = Array.from(
    { length: externalLimits.requestsAtOnceMax },
    () => fetch("https://id.example.com/"),
  );
  await assert.rejects(fetch("https://id.example.com/"), /Too many concurrent requests/);
  for (const answer of waiting) answer();
  await Promise.all(all);
  const again = fetch("https://id.example.com/");
  waiting.at(-1)?.();
  await again;
});

Deno.test("OC4 a real server that sends forever, never responds or redirects is abandoned, and no connection remains open", async () => {
  const held = Promise.withResolvers<Response>();
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/slow") return held.promise;
    if (pathname === "/away") return Response.redirect("http://127.0.0.1:1/", 302);
    return new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536)) }));
  });
  const host = `127.0.0.1:${server.addr.port}`;
  const fetch = boundedFetch({ hosts: new Set([host]), requestMs: 300 });
  await assert.rejects(fetch(`http://${host}/slow`), /no response within 300 ms/);
  // Not limited to a time that a busy machine may exceed.
  const patient = boundedFetch({ hosts: new Set([host]), requestMs: 60_000 });
  await assert.rejects(patient(`http://${host}/away`), /redirect, which is not followed/);
  await assert.rejects(fetch(`http://${host}/endless`), /more than|no response within/);
  held.resolve(new Response());
});
