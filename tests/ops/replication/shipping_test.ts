/** A shipped history can be restored at every point, also after faults during shipping. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { LocationError } from "../../../mod/kit/locations/object_store.ts";
import { openWriterDatabase } from "../../../mod/engine/mod.ts";
import { listGenerations, planRestore } from "../../../mod/ops/replication/mod.ts";
import { packSegment, readSegment, rowsOf } from "../../../mod/ops/replication/segment.ts";
import { ShippingDelay } from "../../../mod/ops/replication/shipping_delay.ts";
import { Rig, schemas, sorted } from "./rig.ts";

const merges = [{ spanMs: 20_000, pieces: 7, bytes: 2 ** 20 }, { spanMs: 60_000, pieces: 4, bytes: 2 ** 22 }];

async function filesIn(folder: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) names.push(...(await filesIn(join(folder, name))).map((below) => `${name}/${below}`));
    else names.push(name);
  }
  return names.sort();
}

Deno.test("RP1 RP2 RP4 PT2 PT3 every ts and every time can be restored, document by document, through schemas, merges and restarts", async () => {
  await using rig = await Rig.start({ seed: 42, merges, snapshotEveryMs: 40_000 });
  await rig.ship();
  for (let step = 0; step < 150; step++) {
    rig.group();
    if (step % 3 === 0) await rig.ship();
    if (step % 40 === 17) rig.changeSchema();
    if (step % 50 === 33) await rig.restart();
  }
  await rig.ship();
  await rig.close();
  const names = await filesIn(rig.replica);
  assert.ok(names.filter((name) => name.endsWith(".0.zst")).length < 20, "small segments were merged");
  assert.ok(names.some((name) => name.endsWith(".1.zst")));
  assert.ok(names.filter((name) => name.endsWith(".tar.zst")).length > 1, "snapshots are taken in between");

  const last = rig.models.length - 1;
  const newest = await rig.restore({});
  assert.equal(newest.staged.ts, last);
  assert.deepEqual(sorted(newest.model), sorted(rig.models[last]));
  for (let round = 0; round < 12; round++) {
    const ts = 1 + rig.pick(last);
    const { staged, model } = await rig.restore({ toTs: ts });
    assert.equal(staged.ts, ts);
    assert.deepEqual(sorted(model), sorted(rig.models[ts]), `ts ${ts}`);
  }
  for (let round = 0; round < 4; round++) {
    const ts = 1 + rig.pick(last);
    const { staged, model } = await rig.restore({ toTime: rig.times[ts] ?? 0 });
    assert.equal(staged.ts, ts);
    assert.deepEqual(sorted(model), sorted(rig.models[ts]));
  }
});

Deno.test("RP9 a restored database continues in a new generation, and the old one can still be restored", async () => {
  await using rig = await Rig.start({ seed: 5 });
  await rig.ship();
  for (let step = 0; step < 20; step++) rig.group();
  await rig.ship();
  const last = rig.models.length - 1;
  const before = await filesIn(rig.replica);
  const { dataDir } = await rig.restore({ toTs: 9 });
  await rig.close();
  await Deno.copyFile(join(dataDir, "data.db"), join(rig.dataDir, "data.db"));
  await rig.open();
  const old = [...rig.models];
  rig.models.length = 10;
  for (let step = 0; step < 5; step++) rig.group();
  await rig.ship();
  const after = await filesIn(rig.replica);
  assert.deepEqual(before.filter((name) => !after.includes(name)), [], "nothing of the old one is gone");
  await using target = await rig.target();
  const generations = await listGenerations(target);
  assert.equal(generations.length, 2);
  const [first] = generations;
  const latest = rig.models.length - 1;
  assert.deepEqual(sorted((await rig.restore({})).model), sorted(rig.models[latest]));
  const again = await rig.restore({ toTs: last, generation: first?.name });
  assert.deepEqual(sorted(again.model), sorted(old[last]));
  // A ts that only the old one has is found there.
  assert.ok(latest < last);
  assert.deepEqual(sorted((await rig.restore({ toTs: last })).model), sorted(old[last]));
});

Deno.test("RP9 a database that is older than its replica, or was changed without it, never continues its generation", async () => {
  await using rig = await Rig.start({ seed: 8 });
  await rig.ship();
  for (let step = 0; step < 5; step++) rig.group();
  await rig.ship();
  await rig.close();
  const copy = join(rig.folder, "copy.db");
  await Deno.copyFile(join(rig.dataDir, "data.db"), copy);
  await rig.open();
  for (let step = 0; step < 5; step++) rig.group();
  await rig.ship();
  const models = [...rig.models];
  await rig.close();
  // A disk's image of some time ago.
  await Deno.copyFile(copy, join(rig.dataDir, "data.db"));
  for (const end of ["-wal", "-shm"]) await Deno.remove(join(rig.dataDir, `data.db${end}`)).catch(() => {});
  await rig.open();
  rig.models.length = rig.db.ts + 1;
  rig.group();
  await rig.ship();
  await rig.ship();
  await using target = await rig.target();
  const generations = await listGenerations(target);
  assert.equal(generations.length, 2);
  const old = await rig.restore({ generation: generations[0]?.name });
  assert.deepEqual(sorted(old.model), sorted(models.at(-1)));
  assert.match(rig.shipper.status.errors.at(-1)?.message ?? "", /new generation/);
});

Deno.test("RP15 of two servers with one target the first one stops with a message, and no data is damaged", async () => {
  await using rig = await Rig.start({ seed: 3 });
  await rig.ship();
  for (let step = 0; step < 4; step++) rig.group();
  await rig.ship();
  const models = [...rig.models];
  const { generation } = rig.shipper.status;
  await using other = await Rig.start({ seed: 4 });
  // The same folder through a symbolic link: another data folder ships to it.
  await other.close();
  await Deno.remove(other.replica, { recursive: true });
  await Deno.symlink(rig.replica, other.replica);
  await other.open();
  await other.ship();
  for (let step = 0; step < 4; step++) other.group();
  await other.ship();
  const before = await filesIn(rig.replica);
  rig.group();
  await rig.ship();
  rig.group();
  await rig.ship();
  assert.deepEqual(await filesIn(rig.replica), before, "the first one puts nothing there any more");
  assert.notEqual(rig.shipper.status.takenBy, null);
  assert.match(rig.shipper.status.errors.at(-1)?.message ?? "", /has taken/);
  assert.equal(other.shipper.status.takenBy, null);
  const restored = await rig.restore({ generation: generation ?? "" });
  assert.deepEqual(sorted(restored.model), sorted(models.at(-1)));
});

Deno.test("PT6 a missing point is refused with the available ranges, and so is another kind of URL", async () => {
  await using rig = await Rig.start({ seed: 2 });
  await rig.ship();
  for (let step = 0; step < 5; step++) rig.group();
  await rig.ship();
  const last = rig.models.length - 1;
  const asked = (message: RegExp) => (error: unknown) => {
    assert.ok(error instanceof LocationError, String(error));
    assert.match(error.message, message);
    return true;
  };
  const ranges = new RegExp(`ts \\d+ to ${last}`);
  await assert.rejects(rig.restore({ toTs: last + 1 }), asked(ranges));
  await assert.rejects(rig.restore({ toTime: 1_000 }), asked(ranges));
  await assert.rejects(rig.restore({ toTime: Date.now() + 86_400_000 }), asked(/is in the future/));
  await assert.rejects(rig.restore({ generation: "20200101T000000Z-00000000" }), asked(ranges));
  const marker = join(rig.replica, "syncline-replica.json");
  await Deno.writeTextFile(marker, '{"syncline":"replica","format":99}');
  await assert.rejects(rig.restore({}), asked(/newer version/));
  await Deno.writeTextFile(marker, "hello");
  await assert.rejects(rig.restore({}), asked(/no replica/));
  await Deno.remove(marker);
  await assert.rejects(rig.restore({}), asked(/no replica/));
});

Deno.test("RP16 flipped, truncated or lost bytes are detected at any position, and never applied", async () => {
  await using rig = await Rig.start({ seed: 11, merges });
  await rig.ship();
  for (let step = 0; step < 30; step++) {
    rig.group();
    await rig.ship();
  }
  await rig.close();
  const names = (await filesIn(rig.replica)).filter((name) => name.includes("/segments/"));
  await using target = await rig.target();
  const [generation] = await listGenerations(target);
  assert.ok(generation);
  const plan = planRestore([generation], {}, { now: Date.now(), location: "" });
  const used = names.filter((name) => plan.segments.some(({ file }) => file.name === name));
  assert.ok(used.length > 3);
  const rowsBefore = (await Array.fromAsync(rowsOf(target, plan.segments))).map(({ sum }) => sum);
  for (let place = 0; place < 200; place++) {
    const name = used[rig.pick(used.length)] ?? "";
    const path = join(rig.replica, name);
    const bytes = await Deno.readFile(path);
    const at = rig.pick(bytes.length);
    const changed = place % 4 === 0 ? bytes.slice(0, at) : bytes.slice();
    if (place % 4 !== 0) changed[at] = (changed[at] ?? 0) ^ (1 << rig.pick(8));
    await Deno.writeFile(path, changed);
    const rows: string[] = [];
    let fault: unknown = null;
    try {
      for await (const { sum } of rowsOf(target, plan.segments)) rows.push(sum);
    } catch (error) {
      fault = error;
    }
    assert.ok(fault instanceof LocationError, `place ${at} of ${name}: ${fault}`);
    assert.deepEqual(rows, rowsBefore.slice(0, rows.length), "only true rows come");
    await Deno.writeFile(path, bytes);
  }
  const [lost = "", ...rest] = used.slice(Math.floor(used.length / 2));
  assert.ok(rest.length > 0);
  await Deno.remove(join(rig.replica, lost));
  await assert.rejects(rig.restore({}), /newest point that can be reached is ts (\d+)/);
  const [, reached] = await rig.restore({}).then(
    () => [],
    (error) => / is ts (\d+)/.exec(String(error)) ?? [],
  );
  const { model } = await rig.restore({ toTs: Number(reached) });
  assert.deepEqual(sorted(model), sorted(rig.models[Number(reached)]));
});

Deno.test("RP16 a misplaced segment, or one with repeated, missing or reordered rows, is never applied, even with valid checksums", async () => {
  await using rig = await Rig.start({ seed: 12, merges: [] });
  await rig.ship();
  for (let segment = 0; segment < 4; segment++) {
    for (let group = 0; group < 4; group++) rig.group();
    await rig.ship();
  }
  await rig.close();
  await using target = await rig.target();
  const [generation] = await listGenerations(target);
  const segments = generation?.segments.slice(-3) ?? [];
  const [before, segment, after] = segments;
  assert.ok(generation && before && segment && after);
  const bytesOf = (of: typeof segment) => Deno.readFile(join(rig.replica, of.file.name));
  const own = await bytesOf(segment);
  const rows = await Array.fromAsync(readSegment(own, segment));
  const [next] = await Array.fromAsync(readSegment(await bytesOf(after), after));
  const [first, second, third, ...rest] = rows;
  assert.ok(first && second && third && next);
  const packed = async (some: typeof rows) =>
    (await packSegment(some, { generation: generation.name, prev: segment.prev, level: 0 })).bytes;
  const wrong = {
    "the one after it": await bytesOf(after),
    "the one before it": await bytesOf(before),
    "a row twice": await packed([first, second, second, third, ...rest]),
    "a row less": await packed([first, third, ...rest]),
    "two rows changed over": await packed([second, first, third, ...rest]),
    "its end missing": await packed(rows.slice(0, -1)),
    "the next one's row with it": await packed([...rows, next]),
    "a changed row": await packed([first, { ...second, body: `${second.body} ` }, third, ...rest]),
    "one of another generation": (await packSegment(rows, {
      ...{ generation: "20200101T000000Z-00000000", prev: segment.prev, level: 0 },
    })).bytes,
  };
  const path = join(rig.replica, segment.file.name);
  for (const [what, bytes] of Object.entries(wrong)) {
    await Deno.writeFile(path, bytes);
    const came: string[] = [];
    await assert.rejects(
      async () => {
        for await (const { sum } of rowsOf(target, [segment])) came.push(sum);
      },
      what,
    );
    assert.deepEqual(came, [...rows, next].slice(0, came.length).map(({ sum }) => sum), what);
    const error = await assertRefused(rig);
    const [, reached] = /--to-ts (\d+) restores it/.exec(error.message) ?? assert.fail(error.message);
    const ts = Number(reached);
    assert.ok(ts >= before.toTs && ts <= next.ts, `${what}: ts ${ts}`);
    assert.deepEqual(sorted((await rig.restore({ toTs: ts })).model), sorted(rig.models[ts]), what);
  }
  await Deno.writeFile(path, own);
  assert.deepEqual(sorted((await rig.restore({})).model), sorted(rig.models.at(-1)));
});

async function assertRefused(rig: Rig): Promise<LocationError> {
  try {
    await rig.restore({});
  } catch (error) {
    if (error instanceof LocationError) return error;
    throw error;
  }
  return assert.fail("it was restored");
}

Deno.test("RP7 RP8 a long outage of the target loses old commits of the replica, never the server's, and a new generation starts", async () => {
  let away = false;
  await using rig = await Rig.start({
    seed: 6,
    pendingBytesMax: 20_000,
    through: (target) =>
      new Proxy(target, {
        get(object, name) {
          if (away && name === "put") {
            return () => Promise.reject(new LocationError("away", "the cable is out"));
          }
          const value: unknown = Reflect.get(object, name);
          return typeof value === "function" ? value.bind(object) : value;
        },
      }),
  });
  await rig.ship();
  for (let step = 0; step < 5; step++) rig.group();
  await rig.ship();
  const reached = rig.models.length - 1;
  const generation = rig.shipper.status.generation;
  away = true;
  for (let step = 0; step < 5; step++) {
    rig.group();
    await assert.rejects(rig.ship(), /cable/);
  }
  assert.equal(rig.shipper.status.shippedTs, reached);
  assert.ok(rig.shipper.status.pending.rows >= 5);
  away = false;
  await rig.ship();
  assert.equal(rig.shipper.status.shippedTs, rig.models.length - 1, "what waited is shipped (RP7)");
  assert.equal(rig.shipper.status.generation, generation);
  away = true;
  while (rig.db.history?.generation === generation) rig.group();
  assert.equal(rig.db.ts, rig.models.length - 1);
  away = false;
  await rig.ship();
  assert.notEqual(rig.shipper.status.generation, generation);
  assert.equal(rig.shipper.status.reason, "overflow");
  assert.equal(rig.shipper.status.counts.overflows, 1);
  assert.deepEqual(sorted((await rig.restore({})).model), sorted(rig.models.at(-1)));
  const old = await rig.restore({ generation: generation ?? "" });
  assert.deepEqual(sorted(old.model), sorted(rig.models[old.staged.ts]));
});

Deno.test("RP2 commits during an upload wait for the next interval, however busy the server is", async () => {
  let puts = 0;
  let busy = true;
  await using rig = await Rig.start({
    seed: 17,
    through: (target) =>
      new Proxy(target, {
        get(object, name) {
          if (name === "put") {
            return async (...args: Parameters<typeof target.put>) => {
              puts++;
              // Commits arrive all the time.
              if (busy && puts < 50) rig.group();
              return await object.put(...args);
            };
          }
          const value: unknown = Reflect.get(object, name);
          return typeof value === "function" ? value.bind(object) : value;
        },
      }),
  });
  await rig.ship();
  puts = 0;
  for (let turn = 1; turn <= 5; turn++) {
    rig.group();
    const { seq } = rig.db.history ?? {};
    await rig.ship();
    assert.equal(puts, turn, "one segment each time");
    assert.equal(rig.db.history?.seq, (seq ?? 0) + 1);
  }
  busy = false;
  await rig.ship();
  assert.equal(rig.shipper.status.shippedTs, rig.models.length - 1);
  assert.deepEqual(sorted((await rig.restore({})).model), sorted(rig.models.at(-1)));
});

Deno.test("RP6 shipping starts earlier by its recent duration, and at most twice as often", () => {
  const lead = new ShippingDelay(1_000);
  assert.equal(lead.waitMs, 500, "how long it takes is not known yet");
  lead.record(120);
  lead.record(40);
  assert.equal(lead.waitMs, 880);
  lead.record(9_000);
  assert.equal(lead.waitMs, 500);
  for (let time = 0; time < 8; time++) lead.record(10);
  assert.equal(lead.waitMs, 990);
});

Deno.test("RP9 writes without replication are in the next generation's snapshot", async () => {
  await using rig = await Rig.start({ seed: 9 });
  await rig.ship();
  rig.group();
  await rig.ship();
  await rig.close();
  {
    using db = openWriterDatabase(join(rig.dataDir, "data.db"));
    db.applySchema(schemas[0] ?? new Map());
    db.openGroup();
    db.beginMutation({ at: rig.now }).insert("items", { n: 1, text: "offline" });
    db.releaseMutation();
    db.commitGroup("");
  }
  await rig.open();
  await rig.ship();
  assert.equal(rig.shipper.status.reason, "written");
  const { model } = await rig.restore({});
  assert.ok([...model.values()].some((text) => text.includes("offline")));
});
