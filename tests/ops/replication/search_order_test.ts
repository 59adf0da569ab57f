/** Search results of a writer, a follower of its replica and a database restored from it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { openReaderDatabase } from "../../../mod/engine/mod.ts";
import { updateFollower } from "../../../mod/ops/replication/follow/update_follower.ts";
import { openTarget } from "../../../mod/ops/replication/mod.ts";
import { Rig, schemas } from "./rig.ts";

const { signal } = new AbortController();
const schema = schemas[1] ?? new Map();

/** Ids in the order of a search in a data folder. Most documents have equal scores. */
function found(dataDir: string): string[] {
  using reader = openReaderDatabase(join(dataDir, "data.db"));
  reader.useSchema(schema);
  reader.openSnapshot();
  const options = { query: "some words", filters: [] };
  return [...reader.beginQuery().search("items", "by_text", options)].map(({ _id }) => _id);
}

Deno.test("RP23 a search returns the same order on the writer, on a follower and in a restored database", async () => {
  await using rig = await Rig.start({ seed: 5 });
  const dataDir = await Deno.makeTempDir({ dir: rig.folder, prefix: "follower-" });
  rig.changeSchema();
  for (let step = 0; step < 12; step++) {
    for (let groups = 0; groups < 5; groups++) rig.group();
    await rig.ship();
    const open = () => openTarget({ kind: "folder", path: rig.replica }, { make: false, signal });
    await updateFollower(open, { dataDir, step: "begin", signal, pollMs: 10 });
    const expected = found(rig.dataDir);
    assert.deepEqual(found(dataDir), expected);
    const inMutation = writersOwn(rig);
    assert.deepEqual(inMutation, expected);
    // A page of one server continues with the next page of another.
    const half = Math.floor(expected.length / 2);
    assert.equal(new Set([...expected.slice(0, half), ...found(dataDir).slice(half)]).size, expected.length);
  }
  const restored = await rig.restore({ toTs: rig.db.ts });
  const expected = found(rig.dataDir);
  assert.ok(expected.length > 20);
  assert.deepEqual(found(restored.dataDir), expected);
});

function writersOwn(rig: Rig): string[] {
  rig.db.openGroup();
  try {
    const tx = rig.db.beginMutation({ at: rig.now });
    return [...tx.search("items", "by_text", { query: "some words", filters: [] })].map(({ _id }) => _id);
  } finally {
    rig.db.rollbackGroup();
  }
}
