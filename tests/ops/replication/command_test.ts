/** `restore --from` and `replica verify`, as an operator types them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { listGenerations } from "../../../mod/ops/replication/mod.ts";
import { Commands } from "../../support/commands.ts";
import { documentsIn, Rig, sorted } from "./rig.ts";

const restoring = Commands.with("restore");
const verifying = Commands.with("restoreRemote");

const namesIn = async (folder: string) =>
  (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();

Deno.test("[PT1] [PT2] [PT6] restore --from lists a replica, reports its plan, and restores a commit, a time or the newest state", async () => {
  await using rig = await Rig.start({ seed: 37, merges: [] });
  await rig.ship();
  for (let group = 0; group < 6; group++) rig.group();
  rig.changeSchema();
  await rig.ship();
  for (let group = 0; group < 6; group++) rig.group();
  await rig.ship();
  await rig.close();
  const last = rig.models.length - 1;
  const data = join(rig.folder, "restored");
  const restore = (...args: string[]) =>
    restoring.run(["restore", "--from", rig.replica, "--data", data, ...args]);
  const restores = async (ts: number, ...args: string[]) => {
    const { code, out, err } = await restore(...args);
    assert.equal(code, 0, err);
    assert.match(out, new RegExp(`^Restored "${rig.replica}, generation .*: ts ${ts}, `), args.join(" "));
    assert.match(err, /^Replaying journal rows/m, "each step is reported");
    assert.match(out, /^A replica contains no secret key, execution log or uploaded files\./m);
    // Only if there is none.
    const keyed = await Deno.stat(join(data, "auth_secret.key")).then(() => true, () => false);
    assert.equal(/^This folder has no auth_secret\.key/m.test(out), !keyed, out);
    await Deno.writeTextFile(join(data, "auth_secret.key"), "a key");
    assert.deepEqual(sorted(documentsIn(join(data, "data.db"))), sorted(rig.models[ts]), args.join(" "));
  };

  const { out: table } = await restore("--list");
  assert.match(table, new RegExp(`^generation .*\\n[0-9TZ]+-[0-9a-f]{8} +0 +${last} `));
  const { generations } = JSON.parse((await restore("--list", "--json")).out);
  assert.deepEqual([generations.length, generations[0].ranges[0].toTs], [1, last]);
  const { out: dry } = await restore("--dry-run", "--to-ts", "4");
  assert.match(dry, /to ts 4: the snapshot of ts 0 .* bytes are fetched, .* Nothing has changed\.\n$/);
  await assert.rejects(Deno.stat(data), Deno.errors.NotFound);

  await restores(4, "--to-ts", "4");
  const at = rig.times[7] ?? 0;
  await restores(rig.times.findLastIndex((time) => time <= at), "--to-time", new Date(at).toISOString());
  await restores(last);
  const kept = (await namesIn(data)).filter((name) => name.startsWith("pre-restore-"));
  assert.equal(kept.length, 2, "what each of them replaced");

  const before = await namesIn(data);
  const elsewhere = await Deno.makeTempDir({ dir: rig.folder });
  await Deno.writeTextFile(join(elsewhere, "of another product"), "");
  const newer = await Deno.makeTempDir({ dir: rig.folder });
  await Deno.writeTextFile(join(newer, "syncline-replica.json"), '{"syncline":"replica","format":99}');
  const empty = await Deno.makeTempDir({ dir: rig.folder });
  const from = (place: string) => ["restore", "--from", place, "--data", data];
  const refusals: readonly (readonly [args: readonly string[], code: number, message: RegExp])[] = [
    [[...from(rig.replica), "--to-ts", String(last + 1)], 1, new RegExp(`ts 0 to ${last}`)],
    [[...from(rig.replica), "--to-time", "1999-01-01T00:00:00Z"], 1, new RegExp(`ts 0 to ${last}`)],
    [[...from(rig.replica), "--generation", "20200101T000000Z-00000000"], 1, /There is no generation/],
    [[...from(rig.replica), "--to-ts", "1", "--to-time", "1999-01-01T00:00:00Z"], 2, /cannot be combined/],
    [[...from(rig.replica), "archive.tar.zst"], 2, /cannot be combined/],
    [from(join(rig.folder, "nowhere")), 1, /does not exist/],
    [from(empty), 1, /is empty: there is no replica/],
    [from(elsewhere), 1, /is no replica: it contains other objects, such as "of another product"/],
    [from(newer), 1, /A newer version of the server wrote the replica/],
    [from("/proc/1/root"), 1, /Cannot|does not exist/],
    [from("mysql://app:hidden@db/app"), 2, /--from: expected a folder, s3:\/\/ or postgres:\/\//],
  ];
  for (const [args, code, message] of refusals) {
    const refused = await restoring.run(args);
    assert.equal(refused.code, code, `${args.join(" ")}: ${refused.err}`);
    assert.match(refused.err, message);
    if (code === 1) assert.match(refused.err, /Nothing has changed( docs=\S+)?\n$/, args.join(" "));
    assert.equal(refused.out, "");
  }
  assert.deepEqual(await namesIn(data), before);
  assert.deepEqual(sorted(documentsIn(join(data, "data.db"))), sorted(rig.models[last]));
});

Deno.test("[RP16] replica verify reads all objects: older snapshots and the segments between them, too", async () => {
  await using rig = await Rig.start({ seed: 43, merges: [] });
  await rig.ship();
  for (let snapshot = 0; snapshot < 2; snapshot++) {
    for (let segment = 0; segment < 3; segment++) {
      rig.group();
      await rig.ship();
    }
    rig.shipper.wantSnapshot();
    await rig.ship();
  }
  rig.group();
  await rig.ship();
  await rig.close();
  const last = rig.models.length - 1;
  const verify = () => verifying.run(["replica", "verify", rig.replica]);
  const sound = await verify();
  assert.equal(sound.code, 0, sound.err);
  assert.match(
    sound.out,
    new RegExp(
      `^Sound: 1 generations, 3 snapshots, \\d+ segments with \\d+ rows, \\d+ bytes; the state of ts ${last} with ` +
        `${rig.models[last]?.size} documents was rebuilt in [\\d.]+ s\\.\\n$`,
    ),
  );

  await using target = await rig.target();
  const [generation] = await listGenerations(target);
  const [first, second] = generation?.snapshots ?? [];
  const segment = generation?.segments.find(({ fromSeq }) => fromSeq > (first?.seq ?? 0) + 1);
  assert.ok(first && second && segment && segment.toSeq < second.seq);
  const path = join(rig.replica, first.file.name);
  const bytes = await Deno.readFile(path);
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] ?? 0) ^ 4;
  await Deno.writeFile(path, bytes);
  await Deno.remove(join(rig.replica, segment.file.name));
  const damaged = await verify();
  assert.equal(damaged.code, 1);
  assert.match(damaged.err, new RegExp(`The snapshot of ts ${first.ts} in .* is damaged`));
  assert.match(
    damaged.err,
    new RegExp(`segments between ts ${segment.fromTs - 1} and the snapshot of ts ${second.ts} are missing`),
  );
  // States that do not need them are sound.
  assert.match(damaged.out, new RegExp(`^Damaged: .*the state of ts ${last} `));
});
