/** Earlier states of the database that restores have put aside. */
import assert from "node:assert/strict";
import { newestReplacedDatabase } from "../../mod/server/data/data_restore.ts";

Deno.test("BS9 the newest set-aside state is used, and none if they were removed", async () => {
  const dataDir = await Deno.makeTempDir();
  try {
    assert.equal(await newestReplacedDatabase(dataDir), null);
    await Deno.writeTextFile(`${dataDir}/pre-restore-note`, "a file, not a state");
    for (const [name, at] of [["pre-restore-a", 1_000_000], ["pre-restore-b", 2_000_000]] as const) {
      await Deno.mkdir(`${dataDir}/${name}`);
      await Deno.utime(`${dataDir}/${name}`, new Date(at), new Date(at));
    }
    assert.equal(await newestReplacedDatabase(dataDir), 2_000_000);
    await Deno.remove(`${dataDir}/pre-restore-b`);
    assert.equal(await newestReplacedDatabase(dataDir), 1_000_000);
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});
