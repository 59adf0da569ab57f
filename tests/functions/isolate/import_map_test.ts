/** The import maps of isolates fit this runtime. */
import assert from "node:assert/strict";
import { builtinModules } from "node:module";
import { importMap } from "../../../mod/functions/isolate/process/make_import_maps.ts";
import { isOpenModule } from "../../../mod/functions/isolate/process/refused_modules.ts";

for (const [file, role] of [["import_map.json", "reader"], ["import_map_runner.json", "runner"]] as const) {
  const url = new URL(`../../../mod/functions/isolate/process/${file}`, import.meta.url);
  const stored = JSON.parse(Deno.readTextFileSync(url)) as { imports: Record<string, string> };

  Deno.test(`${file} equals the output of make_import_maps.ts for this runtime`, async () => {
    assert.deepEqual(stored, await importMap(role), "run make_import_maps.ts again");
  });

  Deno.test(`${file} covers every module of the runtime`, () => {
    for (const listed of builtinModules) {
      const name = listed.replace(/^node:/, "");
      const mapped = stored.imports[`node:${name}`] !== undefined && stored.imports[name] !== undefined;
      assert.equal(mapped, !isOpenModule(name, role), name);
    }
  });
}
