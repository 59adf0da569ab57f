/** What every target does, whichever it is: the folder, a bucket, and a bucket that knows no conditional writes. */
import assert from "node:assert/strict";
import {
  listGenerations,
  openTarget,
  ReplicaError,
  type ReplicaTarget,
} from "../../../mod/ops/replication/mod.ts";
import { BucketTarget } from "../../../mod/ops/replication/target/bucket_target.ts";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { FakeBucket } from "../scheduled/fake_bucket.ts";
import { swiftMissing, SwiftServer } from "../../storage/support/swift_server.ts";
import type { TargetPlace } from "../../../mod/ops/replication/target/open_target.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { Rig, sorted } from "./rig.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const names = async (target: ReplicaTarget, begin: string) =>
  (await Array.fromAsync(target.list(begin))).map(({ name, size }) => `${name} ${size}`).sort();

async function behaves(target: ReplicaTarget, folder: TempFolder): Promise<void> {
  assert.equal(await target.read("a/b.json"), null);
  assert.deepEqual(await names(target, ""), []);
  await target.put("a/b.json", bytes("hello"));
  await target.put("a/c/d.zst", bytes(""));
  await target.put("b.json", bytes("x"));
  assert.deepEqual(await target.read("a/b.json"), bytes("hello"));
  assert.deepEqual(await names(target, "a/"), ["a/b.json 5", "a/c/d.zst 0"]);
  assert.deepEqual(await names(target, "a/c/"), ["a/c/d.zst 0"]);
  await target.put("a/b.json", bytes("hello"));
  await folder.write({ "up": "from a file" });
  await target.upload("snapshots/s.tar.zst", folder.at("up"));
  assert.equal(await target.download("snapshots/s.tar.zst", folder.at("down")), true);
  assert.equal(await Deno.readTextFile(folder.at("down")), "from a file");
  assert.equal(await target.download("snapshots/none", folder.at("none")), false);
  assert.equal(await target.create("owners/1", bytes("first")), true);
  assert.equal(await target.create("owners/1", bytes("second")), false);
  assert.deepEqual(await target.read("owners/1"), bytes("first"));
  const tries = ["one", "two", "three"].map((text) => target.create("owners/2", bytes(text)));
  const won = (await Promise.all(tries)).filter(Boolean);
  assert.ok(won.length <= 1, "of many at once one gets the name at most");
  await target.remove("a/b.json");
  await target.remove("a/b.json");
  assert.equal(await target.read("a/b.json"), null);
}

/** Merges, snapshots, retention, and a second server at the same place. */
async function ships(place: TargetPlace): Promise<void> {
  await using first = await Rig.start({
    seed: 3,
    place,
    merges: [{ spanMs: 1e12, pieces: 3, bytes: 1e9 }],
    snapshotEveryMs: 10_000,
    keepMs: 5_000,
  });
  await first.ship();
  for (let step = 0; step < 30; step++) {
    first.group();
    first.now += 1_500;
    if (step === 20) first.changeSchema();
    if (step % 2 === 0) await first.ship();
  }
  await first.ship();
  const last = first.models.length - 1;
  assert.equal(first.shipper.status.shippedTs, last);
  await using target = await first.target();
  const [generation] = await listGenerations(target);
  assert.ok(generation !== undefined);
  assert.ok(generation.snapshots.length > 1, "snapshots are taken in between");
  assert.ok(generation.segments.some(({ level }) => level === 1), "segments are merged");
  assert.ok((generation.ranges[0]?.fromTs ?? 0) > 1, "what is too old is gone");
  const { staged, model } = await first.restore({});
  assert.equal(staged.ts, last);
  assert.deepEqual(sorted(model), sorted(first.models[last]));

  await using second = await Rig.start({ seed: 4, place, merges: [] });
  second.group();
  await second.ship();
  first.group();
  await first.ship();
  assert.notEqual(first.shipper.status.takenBy, null, "the one that came first stops and says so");
  assert.equal(first.shipper.status.shippedTs, last);
  // Both began in the same second, so that the names do not say which is the newer.
  const { model: theirs } = await second.restore({ generation: second.db.history?.generation ?? "" });
  assert.deepEqual(sorted(theirs), sorted(second.models.at(-1)));
  const { model: still } = await first.restore({ toTs: last, generation: generation.name });
  assert.deepEqual(sorted(still), sorted(first.models[last]), "nothing of either is damaged");
}

Deno.test("[RP3] [RP5] [RP15] a folder is a target", async () => {
  await using folder = new TempFolder();
  await using target = await openTarget({ kind: "folder", path: folder.at("replica") }, { make: true });
  await behaves(target, folder);
  await ships({ kind: "folder", path: folder.at("shipped") });
  await Deno.remove(folder.at("replica"), { recursive: true });
  await assert.rejects(
    target.put("x", bytes("x")),
    (error) => error instanceof ReplicaError && error.fault === "away",
  );
  await assert.rejects(
    openTarget({ kind: "folder", path: folder.at("replica") }, { make: false }),
    (error) => error instanceof ReplicaError && error.fault === "away",
  );
});

Deno.test("[RP3] [RP5] [RP15] a bucket is a target", async () => {
  await using folder = new TempFolder();
  await using service = new FakeBucket();
  let conditional = 0;
  service.fault = ({ method, key, headers }) => {
    if (method !== "PUT" || headers.get("if-none-match") !== "*") return null;
    conditional++;
    return service.objects.has(key) ? service.refusal("PreconditionFailed", 412) : null;
  };
  await using target = new BucketTarget(service.place("app/"));
  await behaves(target, folder);
  await ships({ kind: "bucket", place: service.place("shipped/") });
  assert.ok(conditional > 0);
  service.fault = () => service.refusal("AccessDenied", 403);
  await assert.rejects(
    target.put("x", bytes("x")),
    (error) => error instanceof ReplicaError && error.fault === "refused",
  );
  service.fault = () => service.refusal("SlowDown", 503);
  const isAway = (error: unknown) => error instanceof ReplicaError && error.fault === "away";
  await assert.rejects(target.read("x"), isAway);
  // One that is silent is away, too.
  const never = Promise.withResolvers<Response>();
  service.fault = () => never.promise;
  await using impatient = new BucketTarget(service.place("app/"), { requestMs: 50 });
  await assert.rejects(impatient.put("x", bytes("x")), isAway);
  await assert.rejects(Array.fromAsync(impatient.list("")), isAway);
  never.resolve(new Response());
});

Deno.test("[RP3] a bucket without conditional writes is a target too", async () => {
  await using folder = new TempFolder();
  await using service = new FakeBucket();
  service.fault = ({ headers }) =>
    headers.get("if-none-match") === "*" ? service.refusal("NotImplemented", 501) : null;
  await using target = new BucketTarget(service.place(), { settleMs: 20 });
  await behaves(target, folder);
});

const missing = await swiftMissing();
Deno.test({
  name: `[RP3] [RP5] [RP15] a bucket of a real S3 server is a target${
    missing === null ? "" : ` (left out: ${missing})`
  }`,
  ignore: missing !== null,
  fn: async () => {
    await using folder = new TempFolder();
    await using swift = await SwiftServer.start();
    const { endpoint, accessKeyId, secretAccessKey } = swift;
    const credentials = { accessKeyId, secretAccessKey };
    const client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials });
    await client.send(new CreateBucketCommand({ Bucket: "replicas" }));
    client.destroy();
    const place = { bucket: "replicas", prefix: "app/", region: "us-east-1", endpoint, ...credentials };
    await using target = new BucketTarget(place);
    await behaves(target, folder);
    await ships({ kind: "bucket", place: { ...place, prefix: "shipped/" } });
    await using wrong = new BucketTarget({ ...place, secretAccessKey: "wrong" });
    await assert.rejects(
      wrong.read("x"),
      (error) => error instanceof ReplicaError && error.fault === "refused",
    );
  },
});
