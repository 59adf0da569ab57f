/** Parts of the programs that run in Node, which need no Node to be tried. */
import assert from "node:assert/strict";
import { findProject } from "../../mod/npm/node/project.ts";
import { misspelt } from "../../mod/npm/node/variables.ts";
import { TempFolder } from "../support/temp_folder.ts";

Deno.test("NP10 a variable that is nearly one of the server's gets a hint, one of the app's own does not", () => {
  const known = ["SYNCLINE_PORT", "SYNCLINE_PUBLIC_URL"];
  const names = ["SYNCLINE_PROT", "SYNCLINE_PORT", "syncline_public_url", "SYNCLINE_GITHUB_SECRET", "PORT"];
  assert.deepEqual(misspelt(names, known), [
    "SYNCLINE_PROT is no variable of the server: SYNCLINE_PORT is",
    "syncline_public_url is no variable of the server: SYNCLINE_PUBLIC_URL is",
  ]);
});

Deno.test("NP7 the project is the nearest folder with functions, or whose package.json names the package", async () => {
  await using folder = await TempFolder.with({
    "app/package.json": '{ "devDependencies": { "syncline": "*" } }',
    "app/src/deep/file.ts": "",
    "bare/functions/notes.ts": "",
    "other/package.json": "{}",
  });
  assert.equal(findProject(folder.at("app/src/deep")), folder.at("app"));
  assert.equal(findProject(folder.at("bare/functions")), folder.at("bare"));
  assert.equal(findProject(folder.at("other")), null);
});
