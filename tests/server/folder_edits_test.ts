/** Edits of source files: bursts, edits while none are awaited, and events that are not edits. */
import assert from "node:assert/strict";
import { FolderEdits } from "../../mod/server/dev/folder_edits.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { pause } from "../support/waiting.ts";

/** Far longer than the time between the events of one write on a busy machine. */
const settleMs = 1_000;

Deno.test("a burst of edits, new folders included, is one result", async () => {
  await using folder = await TempFolder.with({ "deep/other.ts": "" });
  using edits = new FolderEdits(folder.path, { settleMs });
  // In one task, so that no timer runs between two edits.
  for (let i = 0; i < 20; i++) Deno.writeTextFileSync(folder.at("deep/a.ts"), `${i}`);
  Deno.writeTextFileSync(folder.at("b.tsx"), "");
  assert.deepEqual(await edits.next(), ["b.tsx", "deep/a.ts"]);
});

Deno.test("edits that were made before they are awaited are not missed", async () => {
  await using folder = new TempFolder();
  using edits = new FolderEdits(folder.path, { settleMs });
  await Deno.writeTextFile(folder.at("a.ts"), "first");
  // The watch reports the edit in the meantime.
  await pause(100);
  assert.deepEqual(await edits.next(), ["a.ts"]);
  const next = edits.next();
  await Deno.writeTextFile(folder.at("b.ts"), "second");
  assert.deepEqual(await next, ["b.ts"]);
});

Deno.test("reads and changes of other files are ignored", async () => {
  await using folder = new TempFolder();
  using edits = new FolderEdits(folder.path, { settleMs });
  await Deno.writeTextFile(folder.at("a.ts"), "x");
  assert.deepEqual(await edits.next(), ["a.ts"]);
  await Deno.readTextFile(folder.at("a.ts"));
  await Deno.mkdir(folder.at("node_modules"));
  for (const name of [".a.ts.swp", ".hidden.ts", "a.ts~", "notes.md", "4913", "node_modules/p.js"]) {
    await Deno.writeTextFile(folder.at(name), "x");
  }
  await Deno.remove(folder.at("notes.md"));
  // Reported after all of these.
  await Deno.writeTextFile(folder.at("last.ts"), "x");
  assert.deepEqual(await edits.next(), ["last.ts"]);
});

Deno.test("the end of the watch resolves a waiting call and later ones with null", async () => {
  await using folder = new TempFolder();
  const edits = new FolderEdits(folder.path);
  const waiting = edits.next();
  edits[Symbol.dispose]();
  assert.equal(await waiting, null);
  assert.equal(await edits.next(), null);
});
