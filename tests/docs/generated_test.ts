/** Generated parts of the documentation match the code. */
import assert from "node:assert/strict";
import { generatedPages } from "../../mod/build/docs.ts";
import { readPage } from "./pages.ts";

Deno.test("generated parts of the documentation are current: run `deno task build:docs`", async () => {
  const pages = await generatedPages();
  assert.ok(pages.size >= 7);
  for (const [path, text] of pages) assert.equal(await readPage(path), text, path);
});
