/** Replicas in a folder, in buckets, and in a bucket of a real S3 server. */
import assert from "node:assert/strict";
import {
  LocationError,
  type ObjectLocation,
  type ObjectStore,
} from "../../../mod/kit/locations/object_store.ts";
import { S3Store } from "../../../mod/kit/locations/s3_store.ts";
import { downloadArchive } from "../../../mod/ops/backups/stored_archives.ts";
import { listGenerations, openTarget } from "../../../mod/ops/replication/mod.ts";
import { readTarget, removeLeftovers } from "../../../mod/ops/replication/replica_target.ts";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { FakeBucket } from "../scheduled/fake_bucket.ts";
import { needs, swift } from "../../support/services.ts";
import { SwiftServer } from "../../storage/support/swift_server.ts";
import { probeFile } from "../../../mod/ops/replication/names.ts";
import { replicationLimits } from "../../../mod/ops/limits.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { Rig, sorted } from "./rig.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const names = async (target: ObjectStore, begin: string) =>
  (await Array.fromAsync(target.list(begin))).map(({ name, size }) => `${name} ${size}`).sort();
const hasFault = (fault: LocationError["fault"]) => (error: unknown) =>
  error instanceof LocationError && error.fault === fault;

/** Merges, snapshots, retention, and a second server on the same target. */
async function ships(place: ObjectLocation): Promise<void> {
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
  // Both started in the same second, so the names do not show which is newer.
  const { model: theirs } = await second.restore({ generation: second.db.history?.generation ?? "" });
  assert.deepEqual(sorted(theirs), sorted(second.models.at(-1)));
  const { model: still } = await first.restore({ toTs: last, generation: generation.name });
  assert.deepEqual(sorted(still), sorted(first.models[last]), "nothing of either is damaged");
}

Deno.test("[RP3] [RP5] [RP15] a folder is a target", async () => {
  await using folder = new TempFolder();
  await ships({ kind: "folder", path: folder.at("shipped") });
  const gone = { kind: "folder", path: folder.at("gone") } as const;
  await assert.rejects(openTarget(gone, { make: false }), hasFault("away"));
});

Deno.test("[RP3] [RP5] [RP15] a bucket is a target", async () => {
  await using service = new FakeBucket();
  let conditional = 0;
  service.fault = ({ method, key, headers }) => {
    if (method !== "PUT" || headers.get("if-none-match") !== "*") return null;
    conditional++;
    return service.objects.has(key) ? service.refusal("PreconditionFailed", 412) : null;
  };
  await ships({ kind: "bucket", bucket: service.location("shipped/") });
  assert.ok(conditional > 0);
  await using target = new S3Store(service.location("app/"));
  service.fault = () => service.refusal("AccessDenied", 403);
  await assert.rejects(target.put("x", bytes("x")), hasFault("refused"));
  // One that is silent is away.
  const never = Promise.withResolvers<Response>();
  service.fault = () => never.promise;
  await using impatient = new S3Store(service.location("app/"), { requestMs: 50 });
  await assert.rejects(impatient.put("x", bytes("x")), hasFault("away"));
  await assert.rejects(Array.fromAsync(impatient.list("")), hasFault("away"));
  never.resolve(new Response());
});

Deno.test("[RP3] [RP7] requests to a bucket that throttles are retried after growing pauses, in every operation", async () => {
  await using folder = new TempFolder();
  await using service = new FakeBucket();
  const pauses: number[] = [];
  const pause = (ms: number) => Promise.resolve(void pauses.push(ms));
  await using target = new S3Store(service.location("app/"), { attempts: 4, pause });
  const large = new Uint8Array(9 * 1024 * 1024);
  await folder.write({ "up": "from a file" });
  await Deno.writeFile(folder.at("large"), large);
  const operations: Record<string, () => Promise<unknown>> = {
    create: () => target.put("owners/1", bytes("mine"), { ifAbsent: true }),
    put: () => target.put("a.json", bytes("hello")),
    upload: () => target.putFile("s.tar.zst", folder.at("up")),
    "upload in parts": () => target.putFile("large.tar.zst", folder.at("large")),
    list: () => names(target, ""),
    read: () => readTarget(target, "a.json"),
    download: () => downloadArchive(target, { name: "s.tar.zst", path: folder.at("down") }),
    remove: () => target.delete("a.json"),
  };
  const refusals = [["SlowDown", 503], ["ServiceUnavailable", 503], ["SlowDown", 429]] as const;
  for (const [operation, run] of Object.entries(operations)) {
    const asked = new Map<string, number>();
    service.fault = ({ method, key, query }) => {
      const request = `${method} ${key} ${query.get("partNumber") ?? [...query.keys()].sort()}`;
      const time = asked.get(request) ?? 0;
      asked.set(request, time + 1);
      const [code, status] = refusals[time] ?? [];
      return code === undefined ? null : service.refusal(code, status ?? 503);
    };
    pauses.length = 0;
    await run();
    assert.ok([...asked.values()].every((times) => times === 4), `${operation}: ${[...asked.values()]}`);
    assert.equal(pauses.length, asked.size * 3, operation);
    for (const [nth, ms] of pauses.entries()) {
      const most = 500 * 2 ** (nth % 3);
      assert.ok(ms >= most / 2 && ms <= most, `${operation}: pause ${nth} of ${ms} ms`);
    }
  }
  assert.equal(await Deno.readTextFile(folder.at("down")), "from a file");
  assert.deepEqual(service.objects.get("app/large.tar.zst"), large);
  assert.equal(service.objects.has("app/a.json"), false);

  const refusedWith = async (answer: () => Response) => {
    let requests = 0;
    pauses.length = 0;
    service.fault = () => (requests++, answer());
    const error = await readTarget(target, "x").catch((error: unknown) => error);
    assert.ok(error instanceof LocationError);
    return { requests, fault: error.fault };
  };
  // It is not retried forever.
  assert.deepEqual(await refusedWith(() => service.refusal("SlowDown", 503)), { requests: 4, fault: "away" });
  assert.deepEqual(await refusedWith(() => service.refusal("InternalError", 500)), {
    requests: 4,
    fault: "away",
  });
  assert.ok(pauses.every((ms) => ms <= 400), "a broken answer is no reason to wait for long");
  // A request without permission is not retried.
  assert.deepEqual(await refusedWith(() => service.refusal("AccessDenied", 403)), {
    requests: 1,
    fault: "refused",
  });
  // The service may say when, within reason.
  for (const [retryAfter, least, most] of [[7, 5_000, 7_000], [3_600, 20_000, 20_000]] as const) {
    await refusedWith(() => {
      const refusal = service.refusal("SlowDown", 503);
      refusal.headers.set("Retry-After", String(retryAfter));
      return refusal;
    });
    assert.ok(pauses.every((ms) => ms >= least && ms <= most), `${retryAfter} s: ${pauses}`);
  }
});

Deno.test("[RP5] incomplete uploads are removed from a folder and a bucket when they are old, and new ones remain", async () => {
  await using folder = new TempFolder();
  const place = folder.at("replica");
  await using target = await openTarget({ kind: "folder", path: place }, { make: true });
  await target.put("generations/g/segments/one", bytes("one"));
  const half = (name: string) => `.${name}.0123456789ab.partial`;
  const halves = [half("syncline-replica.json"), `generations/g/segments/${half("two")}`];
  for (const age of ["old", "new"]) {
    for (const path of halves) {
      await Deno.writeTextFile(
        `${place}/${path.replace("0123", age === "old" ? "0123" : "4567")}`,
        "half of i",
      );
      if (age === "old") await Deno.utime(`${place}/${path}`, 0, 0);
    }
  }
  await removeLeftovers(target, Date.now());
  const left = async (path: string) =>
    (await Array.fromAsync(Deno.readDir(`${place}/${path}`))).map(({ name }) => name);
  assert.deepEqual((await left("")).sort(), [
    half("syncline-replica.json").replace("0123", "4567"),
    "generations",
  ]);
  assert.deepEqual((await left("generations/g/segments")).sort(), [
    half("two").replace("0123", "4567"),
    "one",
  ]);

  await using service = new FakeBucket();
  await using bucket = new S3Store(service.location("app/"));
  const begun = (key: string, daysAgo: number) => ({
    key,
    parts: [],
    begunAt: Date.now() - daysAgo * 86_400_000,
  });
  service.uploads.set("old", begun("app/generations/g/snapshots/1", 4));
  service.uploads.set("under way", begun("app/generations/g/snapshots/2", 2));
  service.uploads.set("another's", begun("app/blobs/1", 100));
  service.uploads.set("of no known age", { key: "app/generations/g/snapshots/3", parts: [] });
  // A key may not be allowed to look for them.
  service.fault = () => service.refusal("AccessDenied", 403);
  await removeLeftovers(bucket, Date.now());
  assert.equal(service.uploads.size, 4);
  service.fault = () => null;
  // Like on a machine whose clock was ahead.
  await removeLeftovers(bucket, Date.now() - 2 * 86_400_000);
  assert.equal(service.uploads.size, 4);
  await removeLeftovers(bucket, Date.now());
  assert.deepEqual([...service.uploads.keys()], ["under way", "another's", "of no known age"]);
});

Deno.test("[RP5] remains of attempts in a folder and a bucket are removed once they are old, a few at a time", async () => {
  await using folder = new TempFolder();
  await using service = new FakeBucket();
  const places = [
    { kind: "folder", path: folder.at("replica") },
    { kind: "bucket", bucket: service.location("app/") },
  ] as const;
  const { probeKeptMs, probesRemovedMax } = replicationLimits;
  const now = Date.UTC(2030, 0, 1);
  const newer = probeFile(now - probeKeptMs + 1, "newer");
  // The last one as names were before.
  const old = Array.from({ length: probesRemovedMax }, (_, n) => probeFile(n, "old")).concat(
    "tried/0123abcd",
  );
  for (const place of places) {
    await using target = await openTarget(place, { make: true });
    for (const name of [...old, newer]) await target.put(name, bytes("tried"));
    await removeLeftovers(target, now);
    assert.equal((await names(target, "tried/")).length, 2);
    await removeLeftovers(target, now);
    assert.deepEqual(await names(target, "tried/"), [`${newer} 5`]);
  }
});

Deno.test("[RP3] a bucket without conditional writes is a target too", async () => {
  await using service = new FakeBucket();
  service.fault = ({ headers }) =>
    headers.get("if-none-match") === "*" ? service.refusal("NotImplemented", 501) : null;
  await using target = new S3Store(service.location(), { settleMs: 20 });
  const claim = (text: string) => target.put("owners/1", bytes(text), { ifAbsent: true });
  assert.equal(await claim("first"), true);
  assert.equal(await claim("second"), false);
  assert.deepEqual(await readTarget(target, "owners/1"), bytes("first"));
  await target.delete("owners/1");
  const won = (await Promise.all(["one", "two", "three"].map(claim))).filter(Boolean);
  assert.ok(won.length <= 1, "of many at once one gets the name at most");
});

Deno.test({
  ...needs(swift, "[RP3] [RP5] [RP15] a bucket of a real S3 server is a target"),
  fn: async () => {
    await using swift = await SwiftServer.start();
    const { endpoint, accessKeyId, secretAccessKey } = swift;
    const credentials = { accessKeyId, secretAccessKey };
    const client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials });
    await client.send(new CreateBucketCommand({ Bucket: "replicas" }));
    client.destroy();
    const place = { bucket: "replicas", prefix: "app/", region: "us-east-1", endpoint, ...credentials };
    await ships({ kind: "bucket", bucket: { ...place, prefix: "shipped/" } });
  },
});
