/** The progress file says which call runs. */
import assert from "node:assert/strict";
import { parseProgress, ProgressFile } from "../../../mod/functions/wire/progress_file.ts";

Deno.test("the file names the running call, and none when idle", () => {
  const path = Deno.makeTempFileSync();
  try {
    using progress = new ProgressFile(path);
    assert.equal(parseProgress(Deno.readFileSync(path)), null);
    const at = progress.begin(7);
    assert.deepEqual(parseProgress(Deno.readFileSync(path)), { position: 7, startedAt: at });
    progress.begin(8);
    assert.equal(parseProgress(Deno.readFileSync(path))?.position, 8);
    progress.storing();
    assert.equal(parseProgress(Deno.readFileSync(path))?.position, null);
    assert.ok(parseProgress(Deno.readFileSync(path)) !== null);
    progress.idle();
    assert.equal(parseProgress(Deno.readFileSync(path)), null);
    assert.equal(parseProgress(new Uint8Array(3)), null);
  } finally {
    Deno.removeSync(path);
  }
});
