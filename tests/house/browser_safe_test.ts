/** What builders, pages and type checks of apps load has nothing of the runtime in it: neither its modules nor their types. */
import assert from "node:assert/strict";
import { repository } from "../docs/pages.ts";

interface Graph {
  readonly modules: readonly { readonly specifier: string }[];
}

for (const door of ["mod/client/mod.ts", "mod/client/react/mod.ts", "mod/functions/api/mod.ts"]) {
  Deno.test(`${door} leads to no module of the runtime, by types neither`, async () => {
    const { stdout, success } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", door],
      cwd: repository,
    }).output();
    assert.ok(success);
    const { modules }: Graph = JSON.parse(new TextDecoder().decode(stdout));
    assert.ok(modules.length > 5);
    const ofTheRuntime = modules.map(({ specifier }) => specifier).filter((name) => name.startsWith("node:"));
    assert.deepEqual(ofTheRuntime, []);
  });
}
