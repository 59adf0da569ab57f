/** A database that follows a replica: the model's state at every step, through merges, restarts, generations and damage. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type FollowerUpdate, updateFollower } from "../../../mod/ops/replication/follow/update_follower.ts";
import type { CommitLog, LogBatch, LogPosition } from "../../../mod/ops/replication/mod.ts";
import { Follower, LogGapError } from "../../../mod/ops/replication/mod.ts";
import { SegmentLog } from "../../../mod/ops/replication/follow/segment_log.ts";
import { openWriterDatabase, readFollowerState } from "../../../mod/engine/mod.ts";
import type { ObjectStore } from "../../../mod/kit/locations/object_store.ts";
import { openTarget } from "../../../mod/ops/replication/mod.ts";
import { StartError } from "../../../mod/config/start_error.ts";
import { prepareFollower } from "../../../mod/server/features/following.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";
import { faultyTarget } from "./faulty_target.ts";
import { documentsIn, Rig, sorted } from "./rig.ts";

const { signal } = new AbortController();

interface Copy {
  readonly dataDir: string;
  /** Brings it on. */
  update(step?: "begin" | "promote" | "renew"): Promise<Extract<FollowerUpdate, { kind: "updated" }>>;
  readonly model: ReturnType<typeof documentsIn>;
}

async function copyOf(rig: Rig, through = (target: ObjectStore) => target): Promise<Copy> {
  const dataDir = await Deno.makeTempDir({ dir: rig.folder, prefix: "follower-" });
  return {
    dataDir,
    async update(step = "begin") {
      const open = async () =>
        through(await openTarget({ kind: "folder", path: rig.replica }, { make: false, signal }));
      const update = await updateFollower(open, { dataDir, step, signal, pollMs: 10 });
      if (update.kind !== "updated") assert.fail("it is a database of its own");
      return update;
    },
    get model() {
      return documentsIn(join(dataDir, "data.db"));
    },
  };
}

function same(copy: Copy, rig: Rig, ts: number): void {
  assert.deepEqual(sorted(copy.model), sorted(rig.models[ts]), `at ts ${ts}`);
}

Deno.test("[RP17] [RP20] a follower has the model's state after every step, through merges, schemas, restarts and generations", async () => {
  const merges = [{ spanMs: 1e12, pieces: 3, bytes: 1e9 }, { spanMs: 1e12, pieces: 2, bytes: 1e9 }];
  await using rig = await Rig.start({ seed: 7, merges });
  rig.group();
  await rig.ship();
  const copy = await copyOf(rig);
  assert.equal((await copy.update()).snapshot, true);
  let snapshots = 0;
  for (let step = 1; step <= 40; step++) {
    for (let groups = rig.pick(4); groups > 0; groups--) rig.group();
    if (step % 9 === 0) rig.changeSchema();
    if (step % 11 === 0) await rig.restart();
    // A generation that ends is continued by a snapshot of the next one.
    if (step % 13 === 0) {
      rig.db.restartJournal({ generation: rig.db.history?.generation ?? "", reason: "overflow" });
    }
    await rig.ship();
    const { ts, snapshot, stale } = await copy.update();
    assert.equal(stale, null);
    assert.equal(ts, rig.db.ts);
    if (snapshot) snapshots++;
    same(copy, rig, ts);
  }
  assert.equal(snapshots, 3);
});

Deno.test("[RP20] a follower within merged rows continues there, and one before all kept rows starts from a snapshot", async () => {
  const merges = [{ spanMs: 1e12, pieces: 6, bytes: 1e9 }];
  await using rig = await Rig.start({ seed: 3, merges, keepMs: 10_000 });
  const [fresh, stale] = [await copyOf(rig), await copyOf(rig)];
  for (let step = 0; step < 3; step++) {
    rig.group();
    await rig.ship();
  }
  await fresh.update();
  await stale.update();
  for (let step = 0; step < 9; step++) {
    rig.group();
    await rig.ship();
  }
  await using target = await rig.target();
  const names = (await Array.fromAsync(target.list("generations/"))).map(({ name }) => name);
  assert.ok(names.some((name) => name.endsWith(".1.zst")), "some were merged");
  assert.equal((await fresh.update()).snapshot, false);
  same(fresh, rig, rig.db.ts);
  // After two more snapshots, everything before the first one is removed.
  for (let step = 0; step < 2; step++) {
    rig.now += 60_000;
    rig.group();
    rig.shipper.wantSnapshot();
    await rig.ship();
    await rig.ship();
  }
  // A restart waits for the background work of the shipper.
  await rig.restart();
  assert.equal((await stale.update()).snapshot, true);
  same(stale, rig, rig.db.ts);
});

Deno.test("[RP20] a newer state is prepared separately, and replaces the active one after any interruption", async () => {
  await using rig = await Rig.start({ seed: 5 });
  rig.group();
  await rig.ship();
  const copy = await copyOf(rig);
  await copy.update();
  const before = copy.model;
  rig.group();
  rig.db.restartJournal({ generation: rig.db.history?.generation ?? "", reason: "overflow" });
  rig.group();
  await rig.ship();
  await copy.update("renew");
  assert.deepEqual(sorted(copy.model), sorted(before), "the one in use is as it was");
  // Killed before the file was moved to its final path, and leftovers of an earlier attempt.
  rig.group();
  await rig.ship();
  const { snapshot } = await copy.update();
  assert.equal(snapshot, false, "what was ready is gone on from");
  same(copy, rig, rig.db.ts);
  await Deno.mkdir(join(copy.dataDir, "incoming-replica/unpacked"), { recursive: true });
  await copy.update();
  same(copy, rig, rig.db.ts);
  const names = (await Array.fromAsync(Deno.readDir(copy.dataDir))).map(({ name }) => name);
  assert.ok(!names.includes("incoming-replica"), String(names));
});

Deno.test("[RP20] [RP22] damaged or missing objects are never applied: they are reported, or a newer snapshot is used", async () => {
  await using rig = await Rig.start({ seed: 9 });
  rig.group();
  await rig.ship();
  const copy = await copyOf(rig);
  const { ts } = await copy.update();
  rig.group();
  await rig.ship();
  await using target = await rig.target();
  const newest = async () =>
    (await Array.fromAsync(target.list("generations/"))).map(({ name }) => name).filter((name) =>
      name.endsWith(".zst") && name.includes("/segments/")
    ).sort().at(-1) ?? "";
  const lost = join(rig.replica, await newest());
  const bytes = await Deno.readFile(lost);
  const broken = bytes.slice();
  broken[broken.length >> 1] = (broken[broken.length >> 1] ?? 0) ^ 1;
  await Deno.writeFile(lost, broken);
  const damaged = await copy.update();
  assert.match(damaged.stale ?? "", /damaged/);
  same(copy, rig, ts);
  await Deno.remove(lost);
  rig.group();
  await rig.ship();
  const gap = await copy.update();
  assert.match(gap.stale ?? "", /does not continue after ts/);
  same(copy, rig, ts);
  rig.shipper.wantSnapshot();
  await rig.ship();
  assert.equal((await copy.update()).snapshot, true);
  same(copy, rig, rig.db.ts);
  const held = readFollowerState(join(copy.dataDir, "data.db"));
  assert.equal(held.source, rig.replica);
  assert.throws(() => openWriterDatabase(join(copy.dataDir, "data.db")), /its commits come from/);
});

Deno.test("[RP20] a follower whose database lacks the documents of a change starts from a snapshot", async () => {
  await using rig = await Rig.start({ seed: 4 });
  for (let group = 0; group < 5; group++) rig.group();
  await rig.ship();
  const copy = await copyOf(rig);
  await copy.update();
  const path = join(copy.dataDir, "data.db");
  {
    using db = new DatabaseSync(path);
    for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE name GLOB 'd[0-9]*'").all()) {
      db.exec(`DELETE FROM ${name}`);
    }
  }
  assert.equal(copy.model.size, 0);
  // Groups change documents of earlier ones.
  for (let group = 0; group < 20; group++) rig.group();
  rig.shipper.wantSnapshot();
  await rig.ship();
  await rig.ship();
  assert.equal((await copy.update()).snapshot, true);
  same(copy, rig, rig.db.ts);
});

Deno.test("[RP20] objects missing in a delayed listing are waited for, and are not a gap", async () => {
  await using rig = await Rig.start({ seed: 11 });
  rig.group();
  await rig.ship();
  const copy = await copyOf(rig);
  await copy.update();
  for (let segment = 0; segment < 2; segment++) {
    rig.group();
    await rig.ship();
  }
  await using target = await rig.target();
  let lacking = 2;
  const late = faultyTarget(target, {
    listed(objects) {
      const segments = objects.filter(({ name }) => name.includes("/segments/"));
      const names = segments.map(({ name }) => name).sort();
      const hidden = lacking-- > 0 ? names.at(-2) : undefined;
      return objects.filter(({ name }) => name !== hidden);
    },
  });
  const { history } = readFollowerState(join(copy.dataDir, "data.db"));
  const { generation, seq, ts, sum } = history ?? assert.fail("it has no history");
  const after: LogPosition = { generation: generation ?? "", seq, ts, sum };
  await using log = new SegmentLog(late, { everyMs: 0, latePolls: 2 });
  for (let look = 0; look < 2; look++) {
    const { items, newestTs } = await log.read(after, { signal });
    assert.deepEqual(items, []);
    assert.ok(newestTs > ts, "there is more than it can reach");
  }
  const { items } = await log.read(after, { signal });
  assert.equal(items.at(-1)?.ts, rig.db.ts);
});

Deno.test("[RP21] a promoted database has its own commits in a separate generation", async () => {
  await using rig = await Rig.start({ seed: 13 });
  rig.group();
  await rig.ship();
  const copy = await copyOf(rig);
  await copy.update();
  rig.group();
  await rig.ship();
  const path = join(copy.dataDir, "data.db");
  await Deno.rename(rig.replica, `${rig.replica}-away`);
  await assert.rejects(copy.update("promote"), /does not exist/);
  assert.equal(readFollowerState(path).source, rig.replica, "nothing was promoted without the newest rows");
  await Deno.rename(`${rig.replica}-away`, rig.replica);
  assert.equal((await copy.update("promote")).ts, rig.db.ts);
  same(copy, rig, rig.db.ts);
  using db = openWriterDatabase(path, { journal: { pendingBytesMax: 2 ** 20 } });
  assert.equal(db.history?.reason, "promoted");
  assert.notEqual(db.history?.generation, rig.db.history?.generation);
  assert.equal(db.ts, rig.db.ts);
});

/** A log and a side in memory. */
class World {
  at: LogPosition = { generation: "g", seq: 0, ts: 0, sum: "" };
  now = 1_000;
  readonly rows: number[] = [];
  readonly applied: number[] = [];
  readonly received: string[] = [];
  fault: Error | null = null;
  renewed: string | null = null;
  #wake = Promise.withResolvers<void>();

  readonly log: CommitLog<number> = {
    location: "memory",
    read: async ({ ts }, { signal }): Promise<LogBatch<number>> => {
      if (this.rows.length === ts && this.fault === null) {
        const aborted = Promise.withResolvers<never>();
        signal.addEventListener("abort", () => aborted.reject(signal.reason));
        await Promise.race([this.#wake.promise, aborted.promise]);
      }
      if (this.fault !== null) throw this.fault;
      return { items: this.rows.slice(ts), newestTs: this.rows.length, checkedAt: this.now };
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };

  commit(): void {
    this.rows.push(this.rows.length + 1);
    this.wake();
  }

  wake(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  follow(
    apply = (items: readonly number[]): Promise<void> => {
      this.applied.push(...items);
      return Promise.resolve();
    },
  ) {
    return new Follower<number>({
      log: this.log,
      side: {
        position: () => this.at,
        apply: async (items) => {
          await apply(items);
          const ts = items.at(-1) ?? this.at.ts;
          this.at = { ...this.at, ts, seq: ts };
        },
        renew: (reason) => Promise.resolve(void (this.renewed = reason)),
      },
      logger: (_level, _message, facts) => void this.received.push(String(facts?.reason)),
      now: () => this.now,
    });
  }
}

Deno.test("[RP19] the newest known commit determines the lag of a follower, and an error is reported once and retried", async () => {
  const world = new World();
  world.commit();
  let failing = true;
  await using follower = world.follow((items) => {
    if (failing) {
      failing = false;
      return Promise.reject(new Error("the disk is full"));
    }
    world.applied.push(...items);
    return Promise.resolve();
  });
  assert.equal(follower.figures.lagMs, null);
  follower.start();
  await until(() => Promise.resolve(world.applied.length === 1), { what: "it is tried again" });
  assert.deepEqual(world.received, ["the disk is full"]);
  await until(() => Promise.resolve(follower.figures.lagMs === 0), { what: "all is shown" });
  world.now += 5_000;
  assert.deepEqual([follower.figures.lagMs, follower.figures.lagCommits], [5_000, 0]);
  assert.deepEqual(follower.figures.errors.map(({ message }) => message), ["the disk is full"]);
  world.commit();
  await until(() => Promise.resolve(follower.figures.ts === 2), { what: "it goes on" });
  await until(() => Promise.resolve(follower.figures.lagMs === 0), { what: "all is shown again" });
});

Deno.test("[RP20] after a gap a follower requests a newer state and ends", async () => {
  const world = new World();
  world.fault = new LogGapError("nothing follows row 0");
  await using follower = world.follow();
  follower.start();
  await until(() => Promise.resolve(world.renewed !== null), { what: "a newer state is requested" });
  assert.equal(world.renewed, "nothing follows row 0");
  assert.deepEqual(world.applied, []);
});

Deno.test("[RP20] a server that is to stop does not wait for a replica that does not answer", async () => {
  await using folder = new TempFolder();
  await Deno.mkdir(folder.at("data"));
  const asked = Promise.withResolvers<void>();
  await using silent = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    asked.resolve();
    return new Promise((resolve) => request.signal.addEventListener("abort", () => resolve(new Response())));
  });
  const stopping = new AbortController();
  const place = {
    endpoint: `http://127.0.0.1:${silent.addr.port}`,
    region: "auto",
    bucket: "b",
    prefix: "",
    accessKeyId: "id",
    secretAccessKey: "secret",
  };
  const update = prepareFollower(
    {
      dataDir: folder.at("data"),
      follow: { from: { kind: "bucket", bucket: place }, everyMs: 20, promote: false },
    },
    { log: () => {}, stopping: stopping.signal },
  );
  const refused = assert.rejects(update, StartError);
  await asked.promise;
  stopping.abort();
  await refused;
});
