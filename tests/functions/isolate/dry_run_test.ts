/** The work of a writer while it waits for its database. */
import assert from "node:assert/strict";
import { dryRun } from "../../../mod/functions/isolate/runs/dry_run.ts";
import { parseFrameText } from "../../../mod/functions/wire/segment_frames.ts";
import type { Group } from "../../../mod/functions/wire/messages.ts";

Deno.test("a dry run commits groups of mutations that read and write, and leaves nothing behind", async () => {
  for (let times = 0; times < 2; times++) {
    // The size of groups and of the executed part of a batch depend on durations.
    const groups = (await dryRun()).map((text) => parseFrameText<Group>(text));
    const results = groups.flatMap(({ segments }) => segments.map((text) => JSON.parse(text)));
    assert.deepEqual(results[0], { count: 1, all: 1 });
    assert.ok(results.length >= 3 && results.every(({ count, all }) => count <= 3 && all <= 4));
    assert.ok(groups.every(({ message }) => message.entries.length > 0));
  }
});
