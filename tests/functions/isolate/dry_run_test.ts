/** What a writer runs while it waits for its database. */
import assert from "node:assert/strict";
import { dryRun } from "../../../mod/functions/isolate/runs/dry_run.ts";
import { parseFrameText } from "../../../mod/functions/wire/segment_frames.ts";
import type { Group } from "../../../mod/functions/wire/messages.ts";

Deno.test("a dry run commits groups of mutations that read and write, and leaves nothing", async () => {
  for (let times = 0; times < 2; times++) {
    const groups = (await dryRun()).map((text) => parseFrameText<Group>(text));
    assert.deepEqual(groups.map(({ message }) => message.answers.length), [4, 4, 4]);
    assert.deepEqual(groups.at(-1)?.segments.map((segment) => JSON.parse(segment)), [
      { count: 3, all: 4 },
      { count: 3, all: 4 },
      { count: 3, all: 4 },
      { count: 3, all: 4 },
    ]);
    assert.equal(groups.at(-1)?.message.entries.length, 4);
  }
});
