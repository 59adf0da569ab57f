/** Every process of a shipped server starts from bundles. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ENTRIES } from "../../mod/build/bundles.ts";
import { projectDir } from "../../mod/build/payload.ts";

Deno.test("every module that a process is started with has its bundle", async () => {
  const files = readdirSync(join(projectDir, "mod"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"));
  const started = new Set(["main.ts", "cli.ts"]);
  for (const file of files) {
    const text = await Deno.readTextFile(join(projectDir, "mod", file));
    for (const [, path = ""] of text.matchAll(/entryModule\("(mod\/[^"]+\.ts)"\)/g)) {
      started.add(path);
    }
    assert.doesNotMatch(text, /entry: new URL\([^)]*import\.meta/, `${file}: begin with the program's root`);
  }
  assert.deepEqual([...started].toSorted(), ENTRIES.toSorted());
});
