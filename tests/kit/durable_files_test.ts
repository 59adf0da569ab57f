/** Files that are replaced completely or not at all. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { removeIfThere, statIfThere, writeDurably } from "../../mod/kit/durable_files.ts";
import { TempFolder } from "../support/temp_folder.ts";

Deno.test("a file is replaced completely, readable by its owner only, and a failure leaves no other file behind", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  const path = join(dir, "state");
  await writeDurably(path, "one");
  await writeDurably(path, "two");
  assert.equal(await Deno.readTextFile(path), "two");
  assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
  await Deno.mkdir(join(dir, "folder"));
  await assert.rejects(writeDurably(join(dir, "folder"), "no"));
  assert.deepEqual([...Deno.readDirSync(dir)].map(({ name }) => name).sort(), ["folder", "state"]);
  await removeIfThere(path);
  await removeIfThere(path);
  assert.equal(await statIfThere(path), null);
});
