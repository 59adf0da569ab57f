/** What every target does, whichever it is: the folder, a bucket, and a bucket that knows no conditional writes. */
import assert from "node:assert/strict";
import { openTarget, ReplicaError, type ReplicaTarget } from "../../../mod/ops/replication/mod.ts";
import { BucketTarget } from "../../../mod/ops/replication/target/bucket_target.ts";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { FakeBucket } from "../scheduled/fake_bucket.ts";
import { swiftMissing, SwiftServer } from "../../storage/support/swift_server.ts";
import { TempFolder } from "../../support/temp_folder.ts";

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

Deno.test("[RP3] a folder is a target", async () => {
  await using folder = new TempFolder();
  await using target = await openTarget({ kind: "folder", path: folder.at("replica") }, { make: true });
  await behaves(target, folder);
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

Deno.test("[RP3] a bucket is a target", async () => {
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
  assert.ok(conditional > 0);
  service.fault = () => service.refusal("AccessDenied", 403);
  await assert.rejects(
    target.put("x", bytes("x")),
    (error) => error instanceof ReplicaError && error.fault === "refused",
  );
  service.fault = () => service.refusal("SlowDown", 503);
  await assert.rejects(target.read("x"), (error) => error instanceof ReplicaError && error.fault === "away");
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
  name: `[RP3] a bucket of a real S3 server is a target${missing === null ? "" : ` (left out: ${missing})`}`,
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
    await using wrong = new BucketTarget({ ...place, secretAccessKey: "wrong" });
    await assert.rejects(
      wrong.read("x"),
      (error) => error instanceof ReplicaError && error.fault === "refused",
    );
  },
});
