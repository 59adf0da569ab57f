/** Retention at a target, and listings of the kept objects. */
import assert from "node:assert/strict";
import { LocationError } from "../../../mod/kit/locations/object_store.ts";
import { listText } from "../../../mod/cli/replica_restore.ts";
import { chainFrom, type Segment } from "../../../mod/ops/replication/history.ts";
import { listGenerations } from "../../../mod/ops/replication/mod.ts";
import { probeFile } from "../../../mod/ops/replication/names.ts";
import { replicationLimits } from "../../../mod/ops/limits.ts";
import { Rig, sorted } from "./rig.ts";

Deno.test("[RP5] expired objects are removed, and every point within the retention can still be restored", async () => {
  const keepMs = 60_000;
  await using rig = await Rig.start({ seed: 13, keepMs, snapshotEveryMs: 20_000 });
  await rig.ship();
  for (let step = 0; step < 40; step++) {
    rig.group();
    rig.now += 5_000;
    await rig.ship();
  }
  const { now } = rig;
  // Closing waits for the background work of the shipper.
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
  await assert.rejects(rig.restore({ toTs: 1 }), LocationError);
});

Deno.test("[RP5] remains of a failed attempt are removed with the expired objects", async () => {
  await using rig = await Rig.start({ seed: 14 });
  await using target = await rig.target();
  const old = probeFile(rig.now - 2 * replicationLimits.probeKeptMs, "old");
  await target.put(old, new Uint8Array(64));
  rig.group();
  await rig.ship();
  await rig.shipper.background;
  assert.equal(await target.head(old), null);
});

Deno.test("[RP5] after a jump of the clock by years nothing expires immediately, and a clock that was wrong at the start expires one step at a time", async () => {
  const DAY = 86_400_000;
  await using rig = await Rig.start({ seed: 15, keepMs: 3 * DAY, snapshotEveryMs: DAY });
  await rig.ship();
  const days = async (count: number) => {
    for (let hour = 0; hour < 24 * count; hour += 4) {
      rig.now += DAY / 6;
      rig.group();
      await rig.ship();
      // Retention runs concurrently with shipping, and is skipped while the last run is active.
      await rig.shipper.background;
    }
  };
  const kept = async () => {
    await using target = await rig.target();
    const [generation] = await listGenerations(target);
    return generation?.snapshots.length ?? 0;
  };
  await days(6);
  const before = await kept();
  assert.ok(before >= 4 && before <= 5, `${before} snapshots are kept`);
  const oldest = async () => {
    await using target = await rig.target();
    return (await listGenerations(target))[0]?.ranges[0]?.fromTs ?? NaN;
  };
  const from = await oldest();
  rig.jump(1_000 * DAY);
  for (let turn = 0; turn < 5; turn++) {
    rig.group();
    rig.now += 3_600_000;
    await rig.ship();
  }
  await rig.close();
  assert.equal(await oldest(), from, "nothing is gone");
  assert.match(
    rig.shipper.status.errors.map(({ message }) => message).join(),
    /clock jumped ahead by 2\d{4} h/,
  );
  // Restarted, with commits of that time at the target: it trusts the clock, and removes step by step.
  await rig.open();
  let last = await kept();
  for (let turn = 0; turn < 3; turn++) {
    rig.group();
    rig.now += 3_600_001;
    await rig.ship();
    await rig.close();
    const now = await kept();
    assert.ok(now >= last - 1, `of ${last} snapshots ${now} are left`);
    last = now;
    const { model } = await rig.restore({ toTs: await oldest() }, Number.MAX_SAFE_INTEGER);
    assert.deepEqual(sorted(model), sorted(rig.models[await oldest()]));
    await rig.open();
  }
  // The clock is correct again: snapshots continue, although the newest one is from the future.
  rig.jump(-1_000 * DAY);
  const { counts } = rig.shipper.status;
  rig.group();
  await rig.ship();
  assert.equal(rig.shipper.status.counts.snapshots, counts.snapshots + 1);
});

Deno.test("[RP5] neither many starts nor a start with a clock years ahead expires anything", async () => {
  const DAY = 86_400_000;
  await using rig = await Rig.start({ seed: 16, keepMs: 2 * DAY, snapshotEveryMs: DAY });
  for (let hour = 0; hour < 24 * 4; hour += 4) {
    rig.now += DAY / 6;
    rig.group();
    await rig.ship();
  }
  const kept = async () => {
    await rig.close();
    await using target = await rig.target();
    return (await listGenerations(target)).flatMap(({ snapshots }) => snapshots.map(({ file }) => file.name));
  };
  const before = await kept();
  // All but the newest are older than the retention time, by this clock.
  rig.jump(1_000 * DAY);
  await rig.open();
  for (let turn = 0; turn < 3; turn++) {
    rig.group();
    rig.now += 3_600_001;
    await rig.ship();
  }
  assert.equal(Math.round((rig.shipper.status.aheadMs ?? 0) / DAY), 1_000);
  assert.deepEqual(rig.shipper.status.errors, [], "it may be that the server was off");
  const after = await kept();
  assert.deepEqual(before.filter((name) => !after.includes(name)), []);
  // The target uses that clock now, and each start checks nothing before its time.
  for (let start = 0; start < 3; start++) {
    await rig.open();
    rig.group();
    await rig.ship();
    const now = await kept();
    assert.deepEqual(after.filter((name) => !now.includes(name)), []);
  }
});

Deno.test("[PT1] a replica's generations and ranges are printed as a table and as JSON", async () => {
  await using rig = await Rig.start({ seed: 14 });
  await rig.ship();
  for (let step = 0; step < 3; step++) rig.group();
  await rig.ship();
  await rig.close();
  await using target = await rig.target();
  const generations = await listGenerations(target);
  const last = rig.models.length - 1;
  const table = listText(generations, { location: target.location, json: false }).split("\n");
  assert.match(table[0] ?? "", /^generation +from ts +to ts +from time +to time +snapshots +segments$/);
  assert.equal(table.length, 2);
  assert.match(table[1] ?? "", new RegExp(`^${generations[0]?.name} +0 +${last} +`));
  const reported = JSON.parse(listText(generations, { location: target.location, json: true }));
  assert.equal(reported.generations[0].generation, generations[0]?.name);
  assert.deepEqual(
    { fromTs: reported.generations[0].ranges[0].fromTs, toTs: reported.generations[0].ranges[0].toTs },
    { fromTs: 0, toTs: last },
  );
  assert.match(listText([], { location: "nowhere", json: false }), /is still empty/);
});

Deno.test("[RP5] remaining pieces of a merged segment do not precede it, with a snapshot at any row", () => {
  const file = { name: "", size: 1 };
  const segment = (fromSeq: number, toSeq: number, level: number): Segment => ({
    ...{ kind: "segment", generation: "g", level, file },
    ...{ fromSeq, toSeq, fromTs: fromSeq, toTs: toSeq, minAt: fromSeq, maxAt: toSeq },
    ...{ prev: `sum ${fromSeq - 1}`, sum: `sum ${toSeq}` },
  });
  // In the order of a listing: with a common prefix the longer name is first.
  const segments = [[1, 9, 1], [10, 14, 1], [13, 13, 0], [15, 19, 1]].map(([from = 0, to = 0, level = 0]) =>
    segment(from, to, level)
  );
  const chains = [9, 11, 12, 13, 14].map((seq) =>
    chainFrom({ seq, sum: `sum ${seq}` }, segments).map(({ fromSeq, toSeq }) => [fromSeq, toSeq])
  );
  const across = [[10, 14], [15, 19]];
  assert.deepEqual(chains, [across, across, across, across, [[15, 19]]]);
});
