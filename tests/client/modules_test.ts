/** The client in the form that browsers load: plain files with erasable types, without packages and platform modules. */
import assert from "node:assert/strict";
import { stripTypeScriptTypes } from "node:module";
import { CLIENT_VERSION } from "../../mod/client/version.ts";
import project from "../../deno.json" with { type: "json" };

/** The modules a browser loads, beginning with the client's door, by address; without comments. */
async function loadedModules(): Promise<Map<string, string>> {
  const modules = new Map<string, string>();
  const queue = [new URL("../../mod/client/mod.ts", import.meta.url).href];
  for (const address of queue) {
    if (modules.has(address)) continue;
    const source = stripTypeScriptTypes(await Deno.readTextFile(new URL(address)))
      .replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
    modules.set(address, source);
    for (const [, name = ""] of source.matchAll(/^(?:import|export)\s[^;"]*?from\s+"([^"]+)"/gm)) {
      assert(name.startsWith("./") || name.startsWith("../"), `${address} imports "${name}"`);
      queue.push(new URL(name, address).href);
    }
  }
  return modules;
}

Deno.test("browsers load only files of client and protocol, and no schema", async () => {
  const modules = await loadedModules();
  assert(modules.size > 15);
  for (const [address, source] of modules) {
    assert.match(address, /\/mod\/(client|protocol)\/[a-z_/]+\.ts$/);
    assert(!address.endsWith("_messages.ts"), `${address} is loaded for its types only`);
    assert.doesNotMatch(
      source,
      /\bDeno\b|\bprocess\.|\bBuffer\b|from "node:/,
      `${address} uses one platform`,
    );
  }
});

Deno.test("the client reports the program's version", () => {
  assert.equal(CLIENT_VERSION, project.version);
});
