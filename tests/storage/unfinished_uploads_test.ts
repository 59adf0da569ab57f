/** Unfinished bucket uploads at startup. */
import assert from "node:assert/strict";
import { openBlobs } from "../../mod/storage/mod.ts";
import { until } from "../support/waiting.ts";
import { FakeBucket } from "../ops/scheduled/fake_bucket.ts";

const DAY_MS = 86_400_000;

Deno.test("a single server aborts all unfinished uploads, one of several only old ones, a follower none", async () => {
  await using bucket = new FakeBucket();
  const now = () => 10 * DAY_MS;
  const begin = () => {
    bucket.uploads.clear();
    bucket.uploads.set("old", { key: "blobs/old", parts: [], begunAt: 8 * DAY_MS });
    bucket.uploads.set("another server's", { key: "blobs/new", parts: [], begunAt: 9.5 * DAY_MS });
    bucket.uploads.set("of no time", { key: "blobs/none", parts: [] });
  };
  const left = async (options: Parameters<typeof openBlobs>[1]) => {
    begin();
    const blobs = await openBlobs({ kind: "bucket", bucket: bucket.location() }, { ...options, now });
    await blobs[Symbol.asyncDispose]();
    return [...bucket.uploads.keys()];
  };
  assert.deepEqual(await left({}), []);
  assert.deepEqual(await left({ shared: true }), ["another server's", "of no time"]);
  assert.deepEqual(await left({ readOnly: true }), ["old", "another server's", "of no time"]);
});

Deno.test({
  name: "with a bucket used before, startup does not wait for aborting uploads",
  // Timers of the client end after the bucket has answered.
  sanitizeOps: false,
  sanitizeResources: false,
  fn: startBeforeAborting,
});

async function startBeforeAborting(): Promise<void> {
  await using bucket = new FakeBucket();
  const place = bucket.location();
  const reported = Promise.withResolvers<unknown>();
  const away = { ...place, bucket: "none" };
  await assert.rejects(openBlobs({ kind: "bucket", bucket: away }, { shared: true }));
  await using _blobs = await openBlobs({ kind: "bucket", bucket: away }, {
    shared: true,
    later: reported.resolve,
  });
  assert.ok(await reported.promise instanceof Error);
  bucket.uploads.set("old", { key: "blobs/old", parts: [], begunAt: 0 });
  await using _there = await openBlobs({ kind: "bucket", bucket: place }, {
    shared: true,
    later: reported.reject,
    now: () => 10 * DAY_MS,
  });
  await until(() => bucket.uploads.size === 0);
}
