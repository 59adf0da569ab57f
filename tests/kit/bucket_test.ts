/** Requests to a bucket that are sent again, given up, or of which there would be too many. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Bucket } from "../../mod/kit/bucket.ts";
import { bucketLimits } from "../../mod/kit/limits.ts";
import { BucketRetries } from "../../mod/kit/places/bucket_retries.ts";
import { FakeBucket } from "../ops/scheduled/fake_bucket.ts";

const AGAIN = { attempts: 3, pause: () => Promise.resolve() };
const PART_BYTES = 4;

/** The name that a service gives to an object of these parts. */
function tagOf(parts: readonly string[]): string {
  const sums = parts.map((part) => createHash("md5").update(part).digest("hex")).join("");
  return `${createHash("md5").update(sums, "hex").digest("hex")}-${parts.length}`;
}

Deno.test("an object in parts whose last answer was lost is there, and counts as written if it is this one", async () => {
  await using service = new FakeBucket();
  using bucket = new Bucket(service.place("app/"), { patience: AGAIN });
  /** `tag`: what the service calls the object then; `meanwhile` may do something to it. */
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

Deno.test("of very many unfinished uploads some are ended at a time, and of very many others some are looked at", async () => {
  await using service = new FakeBucket();
  using bucket = new Bucket(service.place());
  const { unfinishedEndedMax, unfinishedPagesMax } = bucketLimits;
  service.uploads.set("another's", { key: "other/1", parts: [] });
  for (let n = 0; n < unfinishedEndedMax + 2; n++) {
    service.uploads.set(`begun ${n}`, { key: `blobs/${n}`, parts: [] });
  }
  service.uploads.set("not chosen", { key: "blobs/kept", parts: [] });
  const chosen = (name: string) => name !== "blobs/kept";
  await bucket.endUnfinished("blobs/", chosen);
  assert.equal(service.uploads.size, 4);
  // One that another server ends at this moment is as good as ended.
  let refused = 0;
  service.fault = ({ method }) =>
    method === "DELETE" && refused++ === 0 ? service.refusal("NoSuchUpload", 404) : null;
  await bucket.endUnfinished("blobs/", chosen);
  assert.equal(service.uploads.size, 3);
  await bucket.endUnfinished("blobs/", chosen);
  assert.deepEqual([...service.uploads.keys()], ["another's", "not chosen"]);
  let pages = 0;
  service.fault = () => {
    const next = `<NextKeyMarker>blobs/${pages++}</NextKeyMarker>`;
    return new Response(
      `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>${next}</ListMultipartUploadsResult>`,
    );
  };
  await bucket.endUnfinished("blobs/");
  assert.equal(pages, unfinishedPagesMax);
});

Deno.test("a request that is given up while it waits to be sent again ends the pause", async () => {
  await using service = new FakeBucket();
  service.fault = () => service.refusal("SlowDown", 503);
  /** Resolves when its request is given up, and not before. */
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
  using slow = new Bucket(service.place(), { requestMs: 50, patience: given(late) });
  await assert.rejects(slow.size("one"), /no answer for 0.05 s/);
  await late.promise;
  const stopped = Promise.withResolvers<void>();
  const stopping = new AbortController();
  using stops = new Bucket(service.place(), {
    signal: stopping.signal,
    patience: given(stopped, () => stopping.abort()),
  });
  await assert.rejects(stops.size("one"), { name: "AbortError" });
  await stopped.promise;
});

Deno.test({
  name: "a pause that was ended leaves no timer behind",
  sanitizeOps: true,
  async fn() {
    const retries = new BucketRetries({ attempts: 3 });
    const given = new AbortController();
    const info = { errorType: "TRANSIENT", retryAfterHint: new Date(Date.now() + 60_000) } as const;
    const again = retries.during(given.signal, async () => {
      const token = await retries.acquireInitialRetryToken();
      return await retries.refreshRetryTokenForRetry(token, info);
    });
    const refused = assert.rejects(again, { name: "AbortError" });
    await Promise.resolve();
    given.abort();
    await refused;
  },
});
