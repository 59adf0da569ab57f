/** What is kept at a target, and what is told of it. */
import assert from "node:assert/strict";
import { listText } from "../../../mod/cli/replica_restore.ts";
import { listGenerations, ReplicaError } from "../../../mod/ops/replication/mod.ts";
import { Rig, sorted } from "./rig.ts";

Deno.test("[RP5] what is too old goes, and every point of the time to keep can still be restored", async () => {
  const keepMs = 60_000;
  await using rig = await Rig.start({ seed: 13, keepMs, snapshotEveryMs: 20_000 });
  await rig.ship();
  for (let step = 0; step < 40; step++) {
    rig.group();
    rig.now += 5_000;
    await rig.ship();
  }
  const { now } = rig;
  // What goes on beside shipping has ended then.
  await rig.close();
  await using target = await rig.target();
  const [generation] = await listGenerations(target);
  const [range] = generation?.ranges ?? [];
  assert.ok(generation && range);
  assert.equal(generation.ranges.length, 1);
  assert.ok(range.fromTs > 1, "the beginning is gone");
  assert.ok(generation.snapshots.length < 8);
  assert.ok(generation.segments.every(({ toSeq }) => toSeq > (generation.snapshots[0]?.seq ?? 0)));
  assert.ok(range.fromTime <= now - keepMs, "the window is whole");
  const edge = rig.times.findLastIndex((at) => at <= now - keepMs);
  const { model } = await rig.restore({ toTs: edge });
  assert.deepEqual(sorted(model), sorted(rig.models[edge]));
  await assert.rejects(rig.restore({ toTs: 1 }), ReplicaError);
});

Deno.test("[PT1] a replica's generations and ranges are told as a table and as JSON", async () => {
  await using rig = await Rig.start({ seed: 14 });
  await rig.ship();
  for (let step = 0; step < 3; step++) rig.group();
  await rig.ship();
  await rig.close();
  await using target = await rig.target();
  const generations = await listGenerations(target);
  const last = rig.models.length - 1;
  const table = listText(generations, { place: target.place, json: false }).split("\n");
  assert.match(table[0] ?? "", /^generation +from ts +to ts +from time +to time +snapshots +segments$/);
  assert.equal(table.length, 2);
  assert.match(table[1] ?? "", new RegExp(`^${generations[0]?.name} +0 +${last} +`));
  const told = JSON.parse(listText(generations, { place: target.place, json: true }));
  assert.equal(told.generations[0].generation, generations[0]?.name);
  assert.deepEqual(
    { fromTs: told.generations[0].ranges[0].fromTs, toTs: told.generations[0].ranges[0].toTs },
    { fromTs: 0, toTs: last },
  );
  assert.match(listText([], { place: "nowhere", json: false }), /Nothing has been shipped/);
});
