/** Requests to a bucket: retries, aborts and bounds. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Bucket } from "../../mod/kit/locations/bucket.ts";
import { bucketLimits } from "../../mod/kit/limits.ts";
import { BucketRetryStrategy } from "../../mod/kit/locations/bucket_retries.ts";
import { FakeBucket } from "../ops/scheduled/fake_bucket.ts";

const AGAIN = { attempts: 3, pause: () => Promise.resolve() };
const PART_BYTES = 4;

/** Returns the ETag of a multipart object. */
function tagOf(parts: readonly string[]): string {
  const sums = parts.map((part) => createHash("md5").update(part).digest("hex")).join("");
  return `${createHash("md5").update(sums, "hex").digest("hex")}-${parts.length}`;
}

Deno.test("a multipart object whose last answer was lost exists, and counts as written if its content is the same", async () => {
  await using service = new FakeBucket();
  using bucket = new Bucket(service.place("app/"), { retryPolicy: AGAIN });
  /** `tag` is the ETag of the object then; `meanwhile` may change it. */
  const written = async (
    { tag, meanwhile = () => {} }: { readonly tag: string | null; readonly meanwhile?: () => void },
  ) => {
    let completed = 0;
    service.fault = ({ method, key, query }) => {
      const upload = query.get("uploadId");
      if (method === "POST" && upload !== null && completed++ === 0) {
        assert.ok(service.complete(upload));
        meanwhile();
        return service.refusal("InternalError", 500);
      }
      const object = service.objects.get(key);
      if (method !== "HEAD" || object === undefined || tag === null) return null;
      return new Response(null, { headers: { "Content-Length": String(object.length), ETag: `"${tag}"` } });
    };
    const writer = bucket.writer("one", { partBytes: PART_BYTES });
    for (const part of ["abcd", "efgh", "i"]) await writer.write(new TextEncoder().encode(part));
    await writer.commit();
    assert.equal(completed, 2);
  };
  const gone = { name: "NoSuchUpload" };
  await written({ tag: tagOf(["abcd", "efgh", "i"]) });
  await written({ tag: null });
  await written({ tag: "of another kind" });
  await assert.rejects(written({ tag: tagOf(["abcd", "efgh", "j"]) }), gone);
  await assert.rejects(written({ tag: tagOf(["abcdefghi"]) }), gone);
  const other = () => void service.objects.set("app/one", new Uint8Array(8));
  await assert.rejects(written({ tag: null, meanwhile: other }), gone);
  const none = () => void service.objects.delete("app/one");
  await assert.rejects(written({ tag: null, meanwhile: none }), gone);
});

Deno.test("a bounded number of unfinished uploads is listed and aborted at a time", async () => {
  await using service = new FakeBucket();
  using bucket = new Bucket(service.place());
  const { unfinishedEndedMax, unfinishedPagesMax } = bucketLimits;
  service.uploads.set("another's", { key: "other/1", parts: [] });
  for (let n = 0; n < unfinishedEndedMax + 2; n++) {
    service.uploads.set(`begun ${n}`, { key: `blobs/${n}`, parts: [] });
  }
  service.uploads.set("not chosen", { key: "blobs/kept", parts: [] });
  const chosen = (name: string) => name !== "blobs/kept";
  await bucket.abortUnfinishedUploads("blobs/", chosen);
  assert.equal(service.uploads.size, 4);
  // An upload that another server aborts counts as aborted.
  let refused = 0;
  service.fault = ({ method }) =>
    method === "DELETE" && refused++ === 0 ? service.refusal("NoSuchUpload", 404) : null;
  await bucket.abortUnfinishedUploads("blobs/", chosen);
  assert.equal(service.uploads.size, 3);
  await bucket.abortUnfinishedUploads("blobs/", chosen);
  assert.deepEqual([...service.uploads.keys()], ["another's", "not chosen"]);
  let pages = 0;
  service.fault = () => {
    const next = `<NextKeyMarker>blobs/${pages++}</NextKeyMarker>`;
    return new Response(
      `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>${next}</ListMultipartUploadsResult>`,
    );
  };
  await bucket.abortUnfinishedUploads("blobs/");
  assert.equal(pages, unfinishedPagesMax);
});

Deno.test("aborting a request ends its retry pause", async () => {
  await using service = new FakeBucket();
  service.fault = () => service.refusal("SlowDown", 503);
  /** Resolves when its request is aborted. */
  const given = (ended: PromiseWithResolvers<void>, begun = () => {}) => ({
    attempts: 3,
    pause: (_ms: number, signal: AbortSignal | undefined) => {
      assert.ok(signal !== undefined);
      signal.addEventListener("abort", () => ended.resolve(), { once: true });
      begun();
      return ended.promise;
    },
  });
  const late = Promise.withResolvers<void>();
  using slow = new Bucket(service.place(), { requestMs: 50, retryPolicy: given(late) });
  await assert.rejects(slow.size("one"), /did not answer within 0.05 s/);
  await late.promise;
  const stopped = Promise.withResolvers<void>();
  const stopping = new AbortController();
  using stops = new Bucket(service.place(), {
    signal: stopping.signal,
    retryPolicy: given(stopped, () => stopping.abort()),
  });
  await assert.rejects(stops.size("one"), { name: "AbortError" });
  await stopped.promise;
});

Deno.test({
  name: "an aborted retry pause leaves no timer behind",
  sanitizeOps: true,
  async fn() {
    const retries = new BucketRetryStrategy({ attempts: 3 });
    const given = new AbortController();
    const info = { errorType: "TRANSIENT", retryAfterHint: new Date(Date.now() + 60_000) } as const;
    const again = retries.runWithSignal(given.signal, async () => {
      const token = await retries.acquireInitialRetryToken();
      return await retries.refreshRetryTokenForRetry(token, info);
    });
    const refused = assert.rejects(again, { name: "AbortError" });
    await Promise.resolve();
    given.abort();
    await refused;
  },
});
