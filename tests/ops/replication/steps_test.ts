/** Killed at each step: of shipping, merging, snapshots and retention, of a restore, and of following. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { openWriterDatabase, readFollowerState } from "../../../mod/engine/mod.ts";
import type { ObjectStore } from "../../../mod/kit/locations/object_store.ts";
import { applyStagedRestore, stagedRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { replicationLimits } from "../../../mod/ops/limits.ts";
import { updateFollower } from "../../../mod/ops/replication/follow/update_follower.ts";
import { listGenerations, planRestore, stagePoint, verifyReplica } from "../../../mod/ops/replication/mod.ts";
import { removeLeftovers } from "../../../mod/ops/replication/replica_target.ts";
import { type Death, dyingTarget, KillableProcess, Killed, type KillTime } from "./dying_target.ts";
import { faultyTarget } from "./faulty_target.ts";
import { documentsIn, Rig, type RigOptions, sorted } from "./rig.ts";

/** A rig of many lives; a kill may end each of them. */
class Lives implements AsyncDisposable {
  readonly rig: Rig;
  readonly #user: { current: KillableProcess };

  private constructor(rig: Rig, user: { current: KillableProcess }) {
    this.rig = rig;
    this.#user = user;
  }

  static async of(options: RigOptions): Promise<Lives> {
    const user = { current: new KillableProcess(null) };
    const through = (target: ObjectStore) => dyingTarget(target, () => user.current);
    return new Lives(await Rig.start({ ...options, through }), user);
  }

  /** One life: some commits, each shipped on its own. Returns the operation at which it was killed; `null` if it was not. */
  async live(death: Death | null): Promise<string | null> {
    const { rig } = this;
    const user = this.#user.current = new KillableProcess(death);
    try {
      for (let step = 0; step < 4 && user.diedAt === null; step++) {
        rig.group();
        rig.now += 4_000;
        await rig.ship();
      }
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
    await rig.close();
    this.#user.current = new KillableProcess(null);
    return user.diedAt;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
  }
}

/** Steps at which a process is killed, and how often each one is passed before. */
const steps: readonly (readonly [step: string, times: readonly number[]])[] = [
  ["get place", [1]],
  ["list claim", [1]],
  ["put claim", [1]],
  ["list generations", [1, 2]],
  ["put generation", [1]],
  ["put segment", [1, 2]],
  ["get claim", [1, 2]],
  ["put merged segment", [1]],
  ["delete segment", [1, 2]],
  ["putFile snapshot", [1]],
  ["delete snapshot", [1]],
];
/** Maximum number of processes until a step occurs. */
const LIVES = 12;

/** Of what changes something also amid it, where it can be half done, and before its answer. */
function momentsOf(step: string): readonly KillTime[] {
  if (step.startsWith("get ") || step.startsWith("list ")) return ["before"];
  return step.startsWith("delete ") ? ["before", "after"] : ["before", "amid", "after"];
}

/** At the `nth` time of a step. */
function deathAt(step: string, { nth, moment }: { readonly nth: number; readonly moment: KillTime }): Death {
  let left = nth;
  return { moment, isAt: (at) => at === step && --left === 0 };
}

Deno.test("[RP1] [RP2] [RP5] [RP9] [RP16] a server that is killed at any step of shipping continues in its generation, and every reported point can be restored", async () => {
  const merges = [{ spanMs: 1e12, pieces: 3, bytes: 1e9 }, { spanMs: 1e12, pieces: 3, bytes: 1e9 }];
  await using lives = await Lives.of({ seed: 19, merges, snapshotEveryMs: 10_000, keepMs: 40_000 });
  const { rig } = lives;
  const checked = async () => {
    await using target = await rig.target();
    const generations = await listGenerations(target);
    const ranges = generations.flatMap(({ name, ranges }) => ranges.map((range) => ({ ...range, name })));
    const { fromTs, toTs, name } = ranges[rig.pick(ranges.length)] ?? assert.fail("nothing can be restored");
    const point = fromTs + rig.pick(toTs - fromTs + 1);
    const { model } = await rig.restore({ toTs: point, generation: name });
    assert.deepEqual(sorted(model), sorted(rig.models[point]), `ts ${point} of ${name}`);
  };
  await lives.live(null);
  for (const [step, times] of steps) {
    for (const nth of times) {
      for (const moment of momentsOf(step)) {
        const what = `killed ${moment} "${step}", the ${nth}. time`;
        let diedAt: string | null = null;
        for (let life = 0; diedAt === null; life++) {
          assert.ok(life < LIVES, `${what}: it never came to that`);
          await rig.open();
          if (step === "put generation") {
            rig.db.restartJournal({ generation: rig.db.history?.generation ?? "", reason: "overflow" });
          }
          diedAt = await lives.live(deathAt(step, { nth, moment }));
        }
        const { restorable, shippedTs, errors, takenBy } = rig.shipper.status;
        assert.ok(errors.every(({ message }) => !/A new generation begins/.test(message)), what);
        assert.equal(takenBy, null, what);
        if (restorable) {
          const { staged, model } = await rig.restore({});
          assert.ok(staged.ts >= (shippedTs ?? 0), `${what}: ts ${staged.ts} of ${shippedTs}`);
          assert.deepEqual(sorted(model), sorted(rig.models[staged.ts]), what);
        }
        await checked();
      }
    }
  }

  await rig.open();
  await lives.live(null);
  assert.equal(rig.shipper.status.shippedTs, rig.models.length - 1);
  await using target = await rig.target();
  const folder = await Deno.makeTempDir({ dir: rig.folder });
  assert.deepEqual((await verifyReplica(target, { folder })).faults, []);
  // Partial files are no objects, and are removed when they are old.
  const owners = join(rig.replica, "owners");
  const halves = async () =>
    (await Array.fromAsync(Deno.readDir(owners))).map(({ name }) => name).filter((name) =>
      name.endsWith(".partial")
    );
  const [half = ""] = await halves();
  assert.notEqual(half, "");
  await Deno.utime(join(owners, half), 0, 0);
  await removeLeftovers(target, Date.now());
  assert.ok(!(await halves()).includes(half));
});

Deno.test("[RP3] [RP4] after a first start killed at any step, the next one continues with the target", async () => {
  const first = [
    "get place",
    "list place",
    "put place",
    "put claim",
    "put generation",
    "put segment",
  ];
  for (const step of [...first, "putFile snapshot"]) {
    for (const moment of momentsOf(step)) {
      await using lives = await Lives.of({ seed: 23, merges: [] });
      const { rig } = lives;
      assert.equal(await lives.live(deathAt(step, { nth: 1, moment })), step);
      await rig.open();
      await lives.live(null);
      const { staged, model } = await rig.restore({});
      assert.equal(staged.ts, rig.models.length - 1);
      assert.deepEqual(sorted(model), sorted(rig.models.at(-1)), `killed ${moment} "${step}"`);
      const halves = await halvesIn(rig.replica);
      assert.equal(halves.length, moment === "amid" ? 1 : 0, `killed ${moment} "${step}": ${halves}`);
      for (const half of halves) await Deno.utime(half, 0, 0);
      // The next search for expired files finds it, wherever it is.
      await rig.open();
      rig.now += replicationLimits.retentionRunMs;
      await lives.live(null);
      assert.deepEqual(await halvesIn(rig.replica), [], `killed ${moment} "${step}"`);
    }
  }
});

/** Partial files of interrupted writes to a folder. */
async function halvesIn(folder: string): Promise<string[]> {
  const halves: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) halves.push(...await halvesIn(path));
    else if (name.endsWith(".partial")) halves.push(path);
  }
  return halves;
}

/** Copies of a folder in the state that a kill at that moment leaves. */
class Copies {
  readonly paths: string[] = [];
  readonly #of: string;

  constructor(of: string) {
    this.#of = of;
  }

  take(): void {
    const path = `${this.#of}-killed-${this.paths.length}`;
    const { success } = new Deno.Command("cp", { args: ["-r", this.#of, path] }).outputSync();
    assert.ok(success);
    this.paths.push(path);
  }
}

Deno.test("[PT2] [PT3] a restore killed at any step has changed nothing, and the next one completes", async () => {
  await using rig = await Rig.start({ seed: 29, merges: [] });
  await rig.ship();
  for (let segment = 0; segment < 4; segment++) {
    for (let group = 0; group < 4; group++) rig.group();
    if (segment === 1) rig.changeSchema();
    await rig.ship();
  }
  await rig.close();
  await using target = await rig.target();
  const plans = await listGenerations(target);
  const planTo = (toTs?: number) =>
    planRestore(plans, { toTs }, { now: Date.now(), location: target.location });
  const last = rig.models.length - 1;
  for (const stagedTs of [null, 7]) {
    // A folder with data, and perhaps with a restore that waits for the next start.
    const { dataDir } = await rig.restore({ toTs: 5 });
    if (stagedTs !== null) await stagePoint(target, planTo(stagedTs), { dataDir, localFiles: false });
    const copies = new Copies(dataDir);
    const kill = () => copies.take();
    const received = new Set<string>();
    await stagePoint(faultyTarget(target, { before: kill }), planTo(), {
      dataDir,
      localFiles: false,
      onProgress({ step }) {
        received.add(step);
        kill();
      },
    });
    assert.deepEqual([...received], ["fetch", "unpack", "replay", "check"]);
    assert.ok(copies.paths.length > 8, `${copies.paths.length} kills`);
    for (const [nth, copy] of copies.paths.entries()) {
      const path = join(copy, "data.db");
      assert.deepEqual(sorted(documentsIn(path)), sorted(rig.models[5]), `kill ${nth}: the data`);
      assert.equal((await stagedRestore(copy))?.ts ?? null, stagedTs, `kill ${nth}: what was staged`);
      const again = await stagePoint(target, planTo(), { dataDir: copy, localFiles: false });
      assert.equal(again.ts, last);
      await applyStagedRestore(copy, new Date());
      assert.deepEqual(sorted(documentsIn(path)), sorted(rig.models[last]), `kill ${nth}: done again`);
      const names = (await Array.fromAsync(Deno.readDir(copy))).map(({ name }) => name);
      assert.deepEqual(names.filter((name) => /^(incoming|restore-staged)/.test(name)), [], `kill ${nth}`);
    }
  }
});

Deno.test("[RP17] [RP20] [RP21] [RP22] a follower killed at any step has a consistent state, and the next start continues from there", async () => {
  await using rig = await Rig.start({ seed: 31, merges: [] });
  const dataDir = await Deno.makeTempDir({ dir: rig.folder, prefix: "follower-" });
  const { signal } = new AbortController();
  const update = async (
    folder: string,
    { step, kill = () => {} }: { readonly step: "begin" | "promote" | "renew"; readonly kill?: () => void },
  ) => {
    const open = async () => faultyTarget(await rig.target(), { before: kill });
    const result = await updateFollower(open, { dataDir: folder, step, signal, pollMs: 1 });
    return result.kind === "updated" ? result.ts : assert.fail("it is a database of its own");
  };
  const commit = async () => {
    for (let group = 0; group < 3; group++) rig.group();
    await rig.ship();
  };
  const begins = () =>
    rig.db.restartJournal({ generation: rig.db.history?.generation ?? "", reason: "overflow" });
  await rig.ship();
  let kills = 0;
  for (const stage of ["new", "rows", "gap", "renew", "promote"] as const) {
    await commit();
    await commit();
    if (stage === "gap" || stage === "renew") {
      begins();
      await commit();
      await commit();
    }
    const step = stage === "renew" || stage === "promote" ? stage : "begin";
    const copies = new Copies(dataDir);
    await update(dataDir, { step, kill: () => copies.take() });
    assert.ok(copies.paths.length > 2, `${stage}: ${copies.paths.length} kills`);
    kills += copies.paths.length;
    for (const [nth, copy] of copies.paths.entries()) {
      const what = `${stage}, kill ${nth}`;
      const path = join(copy, "data.db");
      if (stage !== "new") {
        const { source, history } = readFollowerState(path);
        assert.equal(source, rig.replica, `${what}: it follows`);
        assert.deepEqual(sorted(documentsIn(path)), sorted(rig.models[history?.ts ?? 0]), `${what}: whole`);
      }
      assert.equal(await update(copy, { step: step === "promote" ? step : "begin" }), rig.db.ts, what);
      assert.deepEqual(sorted(documentsIn(path)), sorted(rig.models[rig.db.ts]), what);
      if (stage !== "promote") continue;
      using db = openWriterDatabase(path, { journal: { pendingBytesMax: 2 ** 20 } });
      assert.equal(db.history?.reason, "promoted", what);
    }
  }
  assert.ok(kills > 20, `${kills} kills`);
});
