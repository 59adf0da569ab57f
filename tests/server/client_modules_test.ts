import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ClientModules } from "../../mod/server/http/client_modules.ts";

interface Modules extends AsyncDisposable {
  readonly modules: ClientModules;
}

async function modules(): Promise<Modules> {
  const root = await Deno.makeTempDir();
  for (const folder of ["client/deep", "protocol", "server"]) {
    await Deno.mkdir(join(root, folder), { recursive: true });
  }
  const source = 'import type { A } from "./a.ts";\nexport const x: number = 1;\nthrow new Error() as A;\n';
  for (
    const path of [
      "client/mod.ts",
      "client/deep/x.ts",
      "protocol/p_q.ts",
      "server/secret.ts",
      "secret.ts",
      "client/a.tsx",
    ]
  ) await Deno.writeTextFile(join(root, path), source);
  return {
    modules: new ClientModules(new URL(`${pathToFileURL(root).href}/`)),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

function get(etag?: string): Request {
  return new Request("http://localhost/", etag === undefined ? {} : { headers: { "if-none-match": etag } });
}

Deno.test("modules are served as JavaScript with unchanged line numbers", async () => {
  await using m = await modules();
  for (const path of ["client/mod.ts", "client/deep/x.ts", "protocol/p_q.ts"]) {
    const response = await m.modules.respond(get(), path);
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get("content-type"), "text/javascript; charset=utf-8");
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
    const lines = (await response.text()).split("\n").map((line) => line.replaceAll(/\s+/g, " ").trim());
    assert.deepEqual(lines, ["", "export const x = 1;", "throw new Error() ;", ""]);
  }
});

Deno.test("files outside the served folders are not found", async () => {
  await using m = await modules();
  const tricks = [
    "server/secret.ts",
    "secret.ts",
    "client/../secret.ts",
    "client/..%2fsecret.ts",
    "client/%2e%2e/secret.ts",
    "client//mod.ts",
    "/client/mod.ts",
    "client/./mod.ts",
    "client/mod.ts?",
    "client/mod.ts#",
    "client/mod",
    "client/a.tsx",
    "client",
    "client/",
    "",
    "client/missing.ts",
    "client/mod.ts/x.ts",
    "file:///etc/passwd",
    "//host/client/mod.ts",
    "Client/mod.ts",
  ];
  for (const path of tricks) {
    const response = await m.modules.respond(get(), path);
    assert.equal(response.status, 404, path);
    await response.body?.cancel();
  }
});

Deno.test("a copy that is still current is answered with 304", async () => {
  await using m = await modules();
  const etag = (await m.modules.respond(get(), "client/mod.ts")).headers.get("etag") ?? "";
  assert.equal((await m.modules.respond(get(etag), "client/mod.ts")).status, 304);
  assert.equal((await m.modules.respond(get('"other"'), "client/mod.ts")).status, 200);
});

Deno.test("the entries lead to the client and to the hooks", async () => {
  await using m = await modules();
  const client = await m.modules.respondWithEntry(get(), "client");
  assert.equal(await client.text(), 'export * from "./modules/client/mod.ts";\n');
  const react = await m.modules.respondWithEntry(get(), "react");
  assert.equal(await react.text(), 'export * from "./modules/client/react/mod.ts";\n');
  const accounts = await m.modules.respondWithEntry(get(), "accounts");
  assert.equal(await accounts.text(), 'export * from "./modules/client/account_features/mod.ts";\n');
});

Deno.test("every module that the client and the hooks load in a browser is served", async () => {
  const modules = new ClientModules();
  const waiting = [
    "client/mod.ts",
    "client/react/mod.ts",
    "client/account_features/mod.ts",
    "client/react/accounts/mod.ts",
    "client/react/account_forms/mod.ts",
    "client/presence/mod.ts",
    "client/react/presence/mod.ts",
    "client/streams/mod.ts",
    "client/react/streams/mod.ts",
  ];
  const seen = new Set(waiting);
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const response = await modules.respond(get(), path);
    assert.equal(response.status, 200, path);
    const text = await response.text();
    for (
      const [, specifier = ""] of text.matchAll(
        /^\s*(?:(?:import|export)\b[^"';=]*?\bfrom\s*|import\s*)"([^"]+)"/gm,
      )
    ) {
      // The page's own, by its import map.
      if (specifier === "react" && path.startsWith("client/react/")) continue;
      assert.ok(specifier.startsWith("."), `${path} imports ${specifier}, which a browser cannot find`);
      const next = new URL(specifier, `http://localhost/${path}`).pathname.slice(1);
      if (!seen.has(next)) waiting.push(next);
      seen.add(next);
    }
  }
});

Deno.test("SF5 a module is compressed for clients that accept it, and revalidated by the ETag of its encoding", async () => {
  const modules = new ClientModules();
  const ask = (headers: Record<string, string>) =>
    modules.respond(new Request("http://localhost/", { headers }), "client/mod.ts");
  const whole = await ask({});
  assert.equal(whole.headers.get("content-encoding"), null);
  const small = await ask({ "accept-encoding": "br, gzip" });
  assert.equal(small.headers.get("content-encoding"), "br");
  assert.equal(small.headers.get("vary"), "Accept-Encoding");
  const unpacked = small.body?.pipeThrough(new DecompressionStream("brotli" as "gzip"));
  assert.equal(await new Response(unpacked).text(), await whole.text());
  const etag = small.headers.get("etag") ?? "";
  assert.notEqual(etag, whole.headers.get("etag"));
  for (
    const [headers, status] of [
      [{ "accept-encoding": "br" }, 304],
      [{ "accept-encoding": "gzip" }, 200],
      [{}, 200],
    ] as const
  ) {
    const again = await ask({ ...headers, "if-none-match": etag });
    assert.equal(again.status, status, JSON.stringify(headers));
    await again.body?.cancel();
  }
});
