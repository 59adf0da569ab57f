/** The packages that browsers load import no `node:` modules, types included. */
import assert from "node:assert/strict";
import { repository } from "../docs/pages.ts";

interface Graph {
  readonly modules: readonly { readonly specifier: string }[];
}

const ENTRY_POINTS = [
  "mod/client/mod.ts",
  "mod/client/react/mod.ts",
  "mod/client/account_features/mod.ts",
  "mod/client/react/accounts/mod.ts",
  "mod/client/react/account_forms/mod.ts",
  "mod/client/presence/mod.ts",
  "mod/client/react/presence/mod.ts",
  "mod/client/streams/mod.ts",
  "mod/client/react/streams/mod.ts",
  "mod/client/vue/mod.ts",
  "mod/client/svelte/mod.ts",
  "mod/client/solid/mod.ts",
  "mod/client/tanstack/mod.ts",
  "mod/client/react_native/mod.ts",
  "mod/client/token_cookie/mod.ts",
  "mod/functions/api/mod.ts",
];

for (const entryPoint of ENTRY_POINTS) {
  Deno.test(`${entryPoint} imports no node: modules, types included`, async () => {
    const { stdout, success } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", entryPoint],
      cwd: repository,
    }).output();
    assert.ok(success);
    const { modules }: Graph = JSON.parse(new TextDecoder().decode(stdout));
    assert.ok(modules.length > 5);
    const nodeModules = modules.map(({ specifier }) => specifier).filter((name) => name.startsWith("node:"));
    assert.deepEqual(nodeModules, []);
  });
}
