/** Targets that fail over time, and other programs that copy the database: all commits are shipped in the end. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LocationError } from "../../../mod/kit/locations/object_store.ts";
import { checkDatabase, openExport, openJournalReader } from "../../../mod/engine/mod.ts";
import { applyStagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { listGenerations, planRestore, stagePoint, verifyReplica } from "../../../mod/ops/replication/mod.ts";
import { Heartbeat } from "../../../mod/ops/replication/heartbeat.ts";
import { until } from "../../support/waiting.ts";
import { type Faults, faultyTarget, wrappedTarget } from "./faulty_target.ts";
import { documentsIn, Rig, sorted } from "./rig.ts";

const WRITES: ReadonlySet<unknown> = new Set(["put", "putFile", "delete"]);

/** Kinds of faults. Each lasts for some steps, one after the other. */
const kinds: readonly ((turn: () => number) => Faults)[] = [
  // Some of all requests end with an error of the service.
  (turn) => ({
    before() {
      if (turn() % 3 === 0) throw new LocationError("away", "it answered 500");
    },
  }),
  // Every request is slow.
  () => ({ before: () => new Promise((resolve) => setTimeout(resolve, 1)) }),
  // It may be read only.
  () => ({
    before(operation) {
      if (WRITES.has(operation)) throw new LocationError("refused", "it may only be read");
    },
  }),
  // Its disk is full, but small files still fit.
  () => ({
    before(operation, name) {
      if (operation === "putFile" || name.includes("/segments/") && operation === "put") {
        throw new LocationError("away", "its disk is full");
      }
    },
  }),
  // A request is done, and its answer is lost.
  () => ({}),
  // New objects are not listed yet.
  (turn) => ({ listed: (objects) => objects.filter(() => turn() % 4 !== 0) }),
  () => ({}),
];

for (const seed of [1, 2, 3]) {
  Deno.test(`[RP7] [RP16] a target with one kind of failure after another finally has everything (seed ${seed})`, async () => {
    const faults: Faults = {};
    let turns = seed;
    const turn = () => ++turns;
    await using rig = await Rig.start({
      seed,
      merges: [{ spanMs: 1e12, pieces: 5, bytes: 1e9 }],
      snapshotEveryMs: 20_000,
      through: (target) => {
        // Of every other put the answer is lost: it is there, and is put again.
        return wrappedTarget(faultyTarget(target, faults), async (operation, _name, run) => {
          const result = await run();
          if (operation === "put" && faults.before === undefined && turn() % 2 === 0) {
            throw new LocationError("away", "no answer came");
          }
          return result;
        });
      },
    });
    let failures = 0;
    for (let step = 0; step < 70; step++) {
      if (step % 10 === 0) {
        delete faults.before;
        delete faults.listed;
        Object.assign(faults, kinds[(step / 10) % kinds.length]?.(turn));
      }
      rig.group();
      if (step % 23 === 11) rig.changeSchema();
      if (step % 17 === 5) await rig.restart();
      await rig.ship().catch((error) => {
        assert.ok(error instanceof LocationError, String(error));
        failures++;
      });
    }
    assert.ok(failures > 20, `${failures} tries failed`);
    faults.before = () => {};
    delete faults.listed;
    await rig.ship();
    await rig.ship();
    const last = rig.models.length - 1;
    assert.equal(rig.shipper.status.shippedTs, last);
    await rig.close();
    const { staged, model } = await rig.restore({});
    assert.equal(staged.ts, last);
    assert.deepEqual(sorted(model), sorted(rig.models[last]));
    await using target = await rig.target();
    const folder = await Deno.makeTempDir({ dir: rig.folder });
    assert.deepEqual((await verifyReplica(target, { folder })).faults, []);
  });
}

Deno.test("[RP16] an intact replica is verified; for one that lost an object the newest restorable point is reported", async () => {
  await using rig = await Rig.start({ seed: 4, merges: [] });
  await rig.ship();
  const reached: number[] = [];
  for (let step = 0; step < 6; step++) {
    rig.group();
    await rig.ship();
    reached.push(rig.models.length - 1);
  }
  await using target = await rig.target();
  const sound = await verifyReplica(target, { folder: await Deno.makeTempDir({ dir: rig.folder }) });
  assert.deepEqual(sound.faults, []);
  assert.equal(sound.rebuilt?.ts, reached.at(-1));
  assert.equal(sound.rebuilt?.documents, rig.models.at(-1)?.size);
  assert.equal(sound.snapshots, 1);

  const segments = (await Array.fromAsync(target.list("generations/")))
    .map(({ name }) => name).filter((name) => name.includes("/segments/")).sort();
  await target.delete(segments.at(-3) ?? "");
  const { faults } = await verifyReplica(target, { folder: await Deno.makeTempDir({ dir: rig.folder }) });
  const newest = reached.at(-4) ?? 0;
  assert.match(faults.join("\n"), new RegExp(`ts ${newest} is the newest point that can be reached`));
  await assert.rejects(rig.restore({}), new RegExp(`which --to-ts ${newest} restores`));
  const { model } = await rig.restore({ toTs: newest });
  assert.deepEqual(sorted(model), sorted(rig.models[newest]));
});

for (
  const { away, forMs, stepMs, due } of [
    { away: "ten minutes", forMs: 600_000, stepMs: 3_000, due: {} },
    // Snapshots became due in the meantime, and other files are older than the retention time.
    {
      away: "a night",
      forMs: 9 * 3_600_000,
      stepMs: 540_000,
      due: { snapshotEveryMs: 3_600_000, keepMs: 7_200_000 },
    },
  ]
) {
  Deno.test(`[RP7] after an outage of ${away} the target gets every commit of that time, in the same generation`, async () => {
    const faults: Faults = {};
    await using rig = await Rig.start({
      seed: 41,
      merges: [],
      ...due,
      through: (target) => faultyTarget(target, faults),
    });
    await rig.ship();
    rig.group();
    await rig.ship();
    const { generation } = rig.shipper.status;
    const first = rig.models.length;
    const begun = rig.now;
    faults.before = () => {
      throw new LocationError("away", "the cable is out");
    };
    let tries = 0;
    for (; rig.now - begun < forMs; tries++) {
      rig.now += stepMs;
      rig.group();
      await assert.rejects(rig.ship(), /cable/);
      if (tries % 50 === 25) await rig.restart();
    }
    assert.ok(tries > 50, `${tries} tries`);
    const waiting = () => {
      using journal = openJournalReader(join(rig.dataDir, "data.db"));
      return journal.read(journal.read(0).confirmed?.seq ?? 0).pending;
    };
    assert.equal(waiting().rows, tries, "each group waits here");
    delete faults.before;
    await rig.ship();
    const last = rig.models.length - 1;
    const { status } = rig.shipper;
    assert.deepEqual([status.generation, status.shippedTs, waiting().rows], [generation, last, 0]);
    assert.equal(status.counts.overflows, 0);
    for (let ts = first; ts <= last; ts += Math.ceil((last - first) / 10)) {
      const { model } = await rig.restore({ toTs: ts });
      assert.deepEqual(sorted(model), sorted(rig.models[ts]), `ts ${ts}`);
    }
    await using target = await rig.target();
    const folder = await Deno.makeTempDir({ dir: rig.folder });
    const { faults: found, rebuilt } = await verifyReplica(target, { folder });
    assert.deepEqual([found, rebuilt?.ts], [[], last]);
  });
}

Deno.test("[RP16] [PT2] segments merged while they are read are found in the merged one: by restores and by verify", async () => {
  const rule = { spanMs: 1e12, pieces: 1e9, bytes: 1e9 };
  await using rig = await Rig.start({ seed: 53, merges: [rule] });
  await rig.ship();
  for (let segment = 0; segment < 12; segment++) {
    rig.group();
    rig.group();
    await rig.ship();
  }
  const last = rig.models.length - 1;
  await using target = await rig.target();
  const segments = async () =>
    (await Array.fromAsync(target.list("generations/"))).filter(({ name }) => name.includes("/segments/"));
  /** At the sixth segment read, all existing segments are merged in groups of five, which the next listing does not show yet. */
  const merging = async () => {
    const known = new Set((await segments()).map(({ name }) => name));
    let reads = 0;
    let late = true;
    return faultyTarget(target, {
      listed(objects) {
        if (reads < 6 || !late) return objects;
        late = false;
        return objects.filter(({ name }) => !name.includes("/segments/") || known.has(name));
      },
      async before(operation, name) {
        if (operation !== "get" || !name.includes("/segments/") || ++reads !== 6) return;
        rule.pieces = 5;
        rig.group();
        await rig.ship();
        await rig.close();
        rule.pieces = 1e9;
      },
    });
  };
  const before = (await segments()).length;
  const plan = planRestore(await listGenerations(target), { toTs: last }, { now: Date.now(), location: "" });
  const dataDir = await Deno.makeTempDir({ dir: rig.folder });
  assert.equal((await stagePoint(await merging(), plan, { dataDir, localFiles: false })).ts, last);
  assert.ok((await segments()).length < before - 5, "they were merged");
  await applyStagedRestore(dataDir, new Date());
  assert.deepEqual(sorted(documentsIn(join(dataDir, "data.db"))), sorted(rig.models[last]));

  await rig.open();
  for (let segment = 0; segment < 8; segment++) {
    rig.group();
    await rig.ship();
  }
  const { rows } = await verifyReplica(target, { folder: await Deno.makeTempDir({ dir: rig.folder }) });
  const folder = await Deno.makeTempDir({ dir: rig.folder });
  const report = await verifyReplica(await merging(), { folder });
  assert.deepEqual(report.faults, []);
  assert.equal(report.rows, rows);
});

Deno.test("[RP5] [RP16] objects that expire during a verification are not damage, and lost newer ones are", async () => {
  await using rig = await Rig.start({ seed: 61, merges: [], snapshotEveryMs: 3_600_000 });
  await rig.ship();
  for (let hour = 0; hour < 3; hour++) {
    rig.group();
    await rig.ship();
    rig.now += 3_700_000;
    await rig.ship();
  }
  await using target = await rig.target();
  const [generation] = await listGenerations(target);
  const [oldest, second, ...newer] = generation?.snapshots ?? [];
  assert.ok(oldest !== undefined && second !== undefined && newer.length > 0);
  const segments = generation?.segments ?? [];
  const verified = async (through: typeof target) =>
    await verifyReplica(through, { folder: await Deno.makeTempDir({ dir: rig.folder }) });
  const report = await verified(faultyTarget(target, {
    async before(operation, name) {
      // Like the server: removing the oldest snapshot also removes files that only it needs.
      if (operation !== "head" || name !== oldest.file.name) return;
      await target.delete(name);
      for (const { toTs, file } of segments) if (toTs <= second.ts) await target.delete(file.name);
    },
  }));
  assert.deepEqual(report.faults, []);
  assert.equal(report.snapshots, newer.length + 1);
  assert.equal(report.segments, segments.filter(({ toTs }) => toTs > second.ts).length);

  const lost = newer[0] ?? assert.fail();
  const { faults } = await verified(faultyTarget(target, {
    async before(operation, name) {
      if (operation === "head" && name === second.file.name) await target.delete(lost.file.name);
    },
  }));
  assert.match(faults.join("\n"), new RegExp(`The snapshot of ts ${lost.ts} .* is missing`));
});

Deno.test("[RP14] a copy of the database files with a journal has a consistent state, and the replica loses nothing", async () => {
  await using rig = await Rig.start({ seed: 8 });
  await rig.ship();
  const path = join(rig.dataDir, "data.db");
  for (let round = 0; round < 12; round++) {
    rig.group();
    // Like replicators of pages: an open read transaction keeps the write-ahead log unchanged during the copy.
    using reader = new DatabaseSync(path, { readOnly: true });
    assert.equal(Object.values(reader.prepare("PRAGMA journal_mode").get() ?? {})[0], "wal");
    reader.exec("BEGIN");
    const { ts } = reader.prepare("SELECT ts FROM syncline_state").get() as { ts: number };
    const copy = await Deno.makeTempDir({ dir: rig.folder, prefix: "pages-" });
    await Deno.copyFile(path, join(copy, "data.db"));
    const wal = await Deno.readFile(`${path}-wal`);
    // Commits continue, and so does shipping, which removes rows.
    for (let more = 0; more < 3; more++) rig.group();
    await rig.ship();
    await Deno.writeFile(join(copy, "data.db-wal"), wal);
    reader.exec("COMMIT");
    assert.equal(checkDatabase(join(copy, "data.db")).ts, ts);
    assert.deepEqual(sorted(documentsIn(join(copy, "data.db"))), sorted(rig.models[ts]), `ts ${ts}`);
  }
  const last = rig.models.length - 1;
  assert.equal(rig.shipper.status.shippedTs, last);
  const { model } = await rig.restore({});
  assert.deepEqual(sorted(model), sorted(rig.models[last]));
  {
    // A process that keeps a snapshot open for very long.
    using held = openExport(path);
    for (let more = 0; more < 20; more++) rig.group();
    await rig.ship();
    assert.equal(held.ts, last);
    assert.equal(rig.shipper.status.shippedTs, rig.models.length - 1);
  }
});

Deno.test("[RP8] commits continue on a disk filled by the journal: it is dropped, a generation starts, and that is reported at once", async () => {
  const faults: Faults = {};
  await using rig = await Rig.start({
    seed: 31,
    pagesMax: 90,
    // It would be dropped for its size only when it is larger than the disk.
    pendingBytesMax: 500_000,
    through: (target) => faultyTarget(target, faults),
  });
  await rig.ship();
  const { generation } = rig.shipper.status;
  const reached = rig.models.length - 1;
  faults.before = () => {
    throw new LocationError("away", "the cable is out");
  };
  // Like in the writer's loop: a group without disk space runs again when space was freed.
  const group = (text: string) => {
    rig.db.openGroup();
    try {
      const tx = rig.db.beginMutation({ at: rig.now += 10 });
      const [id = ""] = rig.models.at(-1)?.keys() ?? [];
      if (id === "") tx.insert("items", { n: 1, text });
      else tx.patch(id, { text });
      rig.db.releaseMutation();
      rig.db.commitGroup("");
    } catch (error) {
      rig.db.rollbackGroup();
      return error;
    }
    rig.models[rig.db.ts] = documentsIn(join(rig.dataDir, "data.db"));
    rig.times[rig.db.ts] = rig.now;
    return null;
  };
  let dropped = 0;
  for (let turn = 0; turn < 3_000 && dropped < 3; turn++) {
    const text = `turn ${turn} ${"x".repeat(1_000)}`;
    const before = rig.db.history?.generation;
    let error = group(text);
    if (error === null) continue;
    if (rig.db.freeDiskSpace(error, { again: false })) {
      assert.equal(rig.db.history?.generation, before, "first the log is copied only");
      error = group(text);
      if (error === null) continue;
    }
    assert.ok(rig.db.freeDiskSpace(error, { again: true }), `no room was made after ${error}`);
    dropped++;
    assert.equal(group(text), null, "it has room then");
  }
  assert.equal(dropped, 3);
  assert.notEqual(rig.db.history?.generation, generation);
  await assert.rejects(rig.ship(), /cable/);
  // Few commits wait now, so the journal does not fill the disk and is kept.
  const last = rig.db.history?.generation;
  const full = Object.assign(new Error("database or disk is full"), {
    code: "ERR_SQLITE_ERROR",
    errcode: 13,
  });
  assert.equal(rig.db.freeDiskSpace(full, { again: true }), false);
  assert.equal(rig.db.history?.generation, last);
  assert.equal(rig.shipper.status.counts.overflows, 1, "it is reported while the target is unreachable");
  assert.ok(rig.shipper.status.errors.some(({ message }) => /dropped.*disk was full/.test(message)));
  assert.equal(rig.db.freeDiskSpace(new Error("something else"), { again: true }), false);
  faults.before = () => {};
  await rig.ship();
  await rig.ship();
  assert.deepEqual(
    [rig.shipper.status.generation, rig.shipper.status.reason, rig.shipper.status.counts.overflows],
    [rig.db.history?.generation, "overflow", 1],
  );
  assert.deepEqual(sorted((await rig.restore({})).model), sorted(rig.models.at(-1)));
  const old = await rig.restore({ generation: generation ?? "" });
  assert.deepEqual([old.staged.ts, sorted(old.model)], [reached, sorted(rig.models[reached])]);
});

Deno.test("[RP11] the heartbeat address is requested at most once a minute, and its answer is logged", async () => {
  let asked = 0;
  let status = 200;
  await using watcher = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
    asked++;
    return new Response(null, { status });
  });
  const received: string[] = [];
  const log = (_level: string, message: string, facts?: object) =>
    void received.push(`${message} ${JSON.stringify(facts)}`);
  const url = `http://127.0.0.1:${watcher.addr.port}/`;
  let now = 0;
  {
    await using heartbeat = new Heartbeat(url, { log, now: () => now });
    for (let segment = 0; segment < 5; segment++) heartbeat.beat();
    await until(() => asked === 1, { what: "it is asked" });
    // Ten minutes with a confirmed segment each second. Requests take a moment.
    for (; now < 600_000; now += 1_000) {
      const due = 1 + Math.floor(now / 60_000);
      await until(() => (heartbeat.beat(), asked === due), { what: `it is asked for the ${due}. time` });
    }
  }
  assert.equal(asked, 10);
  assert.deepEqual(received, []);
  status = 500;
  {
    await using heartbeat = new Heartbeat(url, { log });
    heartbeat.beat();
    await until(() => received.length === 1, { what: "the refusal is logged" });
  }
  assert.match(received[0] ?? "", /Replication heartbeat failed .*answered 500/);
  await using none = new Heartbeat(null, { log });
  none.beat();
  assert.equal(asked, 11);
});

Deno.test("[RP9] [PT2] [PT3] a clock that jumps loses no commit: each can be restored, and a time selects the newest commit that is not later", async () => {
  const MINUTE = 60_000;
  await using rig = await Rig.start({
    seed: 21,
    merges: [{ spanMs: 1e12, pieces: 4, bytes: 1e9 }],
    snapshotEveryMs: 20 * MINUTE,
  });
  await rig.ship();
  const { now: begun } = rig;
  const generations: string[] = [];
  const jumps = [0, 90, -200, -30, 500, 0, -700, 5, 60, -1];
  for (const [index, minutes] of jumps.entries()) {
    rig.jump(minutes * MINUTE);
    for (let group = 0; group < 5; group++) {
      rig.group();
      if (group % 2 === 0) await rig.ship();
    }
    if (index % 3 === 2) await rig.restart();
    const generation = rig.db.history?.generation ?? null;
    if (generation !== null && generations.at(-1) !== generation) generations.push(generation);
    // A generation that starts while the clock is set back is newer nevertheless.
    if (index === 6) rig.db.restartJournal({ generation: generation ?? "", reason: "lost" });
  }
  await rig.ship();
  await rig.ship();
  const last = rig.models.length - 1;
  assert.equal(rig.shipper.status.shippedTs, last);
  await rig.close();
  await using target = await rig.target();
  const listed = await listGenerations(target);
  assert.deepEqual(listed.map(({ name }) => name), generations);
  assert.equal(listed.length, 2);
  const restorable = (ts: number) =>
    listed.some(({ ranges }) => ranges.some(({ fromTs, toTs }) => fromTs <= ts && ts <= toTs));
  let restored = 0;
  for (let ts = 1; ts <= last; ts += 4) {
    if (!restorable(ts)) continue;
    const { model } = await rig.restore({ toTs: ts });
    assert.deepEqual(sorted(model), sorted(rig.models[ts]), `ts ${ts}`);
    restored++;
  }
  assert.ok(restored > 10, `${restored} were restored`);
  const newest = await rig.restore({});
  assert.deepEqual([newest.staged.ts, sorted(newest.model)], [last, sorted(rig.models[last])]);
  // In the generation that was written while the clock went ahead and back.
  const first = listed[0];
  const range = first?.ranges[0];
  assert.ok(first !== undefined && range !== undefined);
  const known = rig.times.map((at, ts) => ({ at, ts })).filter(({ ts }) => ts <= range.toTs);
  const toTime = begun + 20 * MINUTE;
  const { staged, model } = await rig.restore({ toTime, generation: first.name }, Number.MAX_SAFE_INTEGER);
  const expected = Math.max(...known.filter(({ at }) => at <= toTime).map(({ ts }) => ts));
  assert.equal(staged.ts, expected);
  assert.deepEqual(sorted(model), sorted(rig.models[expected]));
});
