/** Requests to a bucket: retries, aborts and bounds, with a controllable service. */
import assert from "node:assert/strict";
import { objectLimits } from "../../mod/kit/limits.ts";
import { readObject } from "../../mod/kit/locations/object_store.ts";
import { S3RetryStrategy } from "../../mod/kit/locations/s3_retries.ts";
import { S3Store } from "../../mod/kit/locations/s3_store.ts";
import { FakeBucket } from "../ops/scheduled/fake_bucket.ts";
import { pause } from "../support/waiting.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const noPause = () => Promise.resolve();

Deno.test("a multipart object whose last response was lost exists, and counts as written if its size matches", async () => {
  await using service = new FakeBucket();
  await using store = new S3Store(service.location("app/"), { pause: noPause });
  /** `meanwhile` may change the completed object. */
  const written = async (meanwhile = () => {}) => {
    let completed = 0;
    service.fault = ({ method, query }) => {
      const upload = query.get("uploadId");
      if (method !== "POST" || upload === null || completed++ > 0) return null;
      assert.ok(service.complete(upload));
      meanwhile();
      return service.refusal("InternalError", 500);
    };
    const writer = await store.create("one");
    await writer.write(new Uint8Array(objectLimits.partBytes));
    await writer.write(bytesOf("end"));
    await writer.commit();
    assert.equal(completed, 2);
  };
  await written();
  assert.equal(service.objects.get("app/one")?.length, objectLimits.partBytes + 3);
  await assert.rejects(written(() => void service.objects.set("app/one", new Uint8Array(8))), /NoSuchUpload/);
  await assert.rejects(written(() => void service.objects.delete("app/one")), /NoSuchUpload/);
});

Deno.test("an upload that fails halfway is reported, also by waiting writes, and aborted", async () => {
  await using service = new FakeBucket();
  await using store = new S3Store(service.location());
  service.fault = ({ query }) =>
    query.get("partNumber") === "2" ? service.refusal("QuotaExceeded", 403) : null;
  const writer = await store.create("one");
  const write = async () => {
    for (let part = 0; part < 6; part++) await writer.write(new Uint8Array(objectLimits.partBytes));
    await writer.commit();
  };
  await assert.rejects(write(), /Cannot write to "s3:\/\/files\/": QuotaExceeded/);
  await writer.abort();
  assert.deepEqual([service.objects.size, service.uploads.size], [0, 0]);
});

Deno.test("a file whose upload the bucket reports with another size is not stored", async () => {
  await using service = new FakeBucket();
  await using store = new S3Store(service.location());
  service.fault = ({ method }) =>
    method === "HEAD" ? new Response(null, { headers: { "Content-Length": "7" } }) : null;
  const path = await Deno.makeTempFile();
  await Deno.writeFile(path, new Uint8Array(100));
  await assert.rejects(store.putFile("one", path, { move: true }), /has stored 7 of 100 bytes of "one"/);
  await Deno.remove(path);
});

Deno.test("a listing continues over pages", async () => {
  await using service = new FakeBucket();
  await using store = new S3Store(service.location("app/"));
  service.fault = ({ query }) => {
    const next = Number(query.get("continuation-token") ?? "0") + 1;
    const more = next < 3 ? `<NextContinuationToken>${next}</NextContinuationToken>` : "";
    const object = `<Contents><Key>app/${next}</Key><Size>${next}</Size></Contents>`;
    return new Response(`<ListBucketResult>${object}${more}</ListBucketResult>`);
  };
  const sizes = (await Array.fromAsync(store.list(""))).map(({ name, size }) => `${name} ${size}`);
  assert.deepEqual(sizes, ["1 1", "2 2", "3 3"]);
});

Deno.test("a bounded number of unfinished uploads is listed and aborted at a time", async () => {
  await using service = new FakeBucket();
  await using bucket = new S3Store(service.location());
  const { unfinishedEndedMax, unfinishedPagesMax } = objectLimits;
  service.uploads.set("another's", { key: "other/1", parts: [] });
  for (let n = 0; n < unfinishedEndedMax + 2; n++) {
    service.uploads.set(`begun ${n}`, { key: `blobs/${n}`, parts: [] });
  }
  service.uploads.set("not chosen", { key: "blobs/kept", parts: [] });
  const chosen = (name: string) => name !== "blobs/kept";
  await bucket.removeUnfinished("blobs/", { chosen });
  assert.equal(service.uploads.size, 4);
  // An upload that another server aborts counts as aborted.
  let refused = 0;
  service.fault = ({ method }) =>
    method === "DELETE" && refused++ === 0 ? service.refusal("NoSuchUpload", 404) : null;
  await bucket.removeUnfinished("blobs/", { chosen });
  assert.equal(service.uploads.size, 3);
  await bucket.removeUnfinished("blobs/", { chosen });
  assert.deepEqual([...service.uploads.keys()], ["another's", "not chosen"]);
  let pages = 0;
  service.fault = () => {
    const next = `<NextKeyMarker>blobs/${pages++}</NextKeyMarker>`;
    return new Response(
      `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>${next}</ListMultipartUploadsResult>`,
    );
  };
  await bucket.removeUnfinished("blobs/");
  assert.equal(pages, unfinishedPagesMax);
});

Deno.test("aborting a request ends its retry pause", async () => {
  await using service = new FakeBucket();
  service.fault = () => service.refusal("SlowDown", 503);
  /** Resolves when its request is aborted. */
  const given = (ended: PromiseWithResolvers<void>, begun = () => {}) => ({
    pause: (_ms: number, signal: AbortSignal | undefined) => {
      assert.ok(signal !== undefined);
      signal.addEventListener("abort", () => ended.resolve(), { once: true });
      begun();
      return ended.promise;
    },
  });
  // On a busy machine a short timeout may pass before the first answer. Then there is no retry pause.
  let pauses = 0;
  for (let requestMs = 100; pauses === 0 && requestMs < 60_000; requestMs *= 3) {
    const late = Promise.withResolvers<void>();
    await using slow = new S3Store(service.location(), { requestMs, ...given(late, () => pauses++) });
    await assert.rejects(slow.head("one"), /did not answer within [\d.]+ s/);
    if (pauses > 0) await late.promise;
  }
  assert.ok(pauses > 0);
  const stopped = Promise.withResolvers<void>();
  const stopping = new AbortController();
  await using stops = new S3Store(service.location(), {
    signal: stopping.signal,
    ...given(stopped, () => stopping.abort()),
  });
  await assert.rejects(stops.head("one"), { name: "AbortError" });
  await stopped.promise;
});

Deno.test({
  name: "an aborted retry pause leaves no timer behind",
  sanitizeOps: true,
  async fn() {
    const retries = new S3RetryStrategy({ attempts: 3 });
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

Deno.test("a read that is interrupted or stalls is resumed, and fails if the object changes or disappears", async () => {
  await using service = new FakeBucket();
  await using store = new S3Store(service.location(), { stallMs: 2_000 });
  const whole = new Uint8Array(100_000).map((_, at) => (at * 31) % 251);
  let answers = 0;
  let refusal: Response | null = null;
  const ended = Promise.withResolvers<void>();
  // Each response ends or stalls after at most 40,000 bytes.
  service.fault = ({ method, headers }) => {
    if (method !== "GET") return null;
    const from = Number(headers.get("range")?.match(/^bytes=(\d+)-/)?.[1] ?? 0);
    assert.equal(headers.get("if-match"), from === 0 ? null : '"one"');
    if (from > 0 && refusal !== null) return refusal;
    const stalls = answers++ === 1;
    let isSent = false;
    const body = new ReadableStream({
      async pull(controller) {
        if (!isSent) controller.enqueue(whole.slice(from, from + 40_000));
        else if (from + 40_000 >= whole.length) controller.close();
        else if (stalls) await ended.promise;
        else {
          // Sent data must arrive before the connection is cut.
          await pause(200);
          controller.close();
        }
        isSent = true;
      },
    });
    return new Response(body, { headers: { ETag: '"one"', "Content-Length": String(whole.length - from) } });
  };
  assert.deepEqual(await readObject(store, "one", whole.length), whole);
  // A pause of a busy machine counts as another stall.
  assert.ok(answers >= 3 && answers <= 10, String(answers));
  refusal = service.refusal("NoSuchKey", 404);
  assert.equal(await readObject(store, "one", whole.length), null);
  refusal = service.refusal("PreconditionFailed", 412);
  await assert.rejects(readObject(store, "one", whole.length), /"one" was replaced while it was read/);
  ended.resolve();
});

Deno.test("a read without progress fails after some attempts", async () => {
  await using service = new FakeBucket();
  await using store = new S3Store(service.location());
  let answers = 0;
  service.fault = () => {
    answers++;
    const body = new ReadableStream({ start: (controller) => controller.close() });
    return new Response(body, { headers: { ETag: '"one"', "Content-Length": "100" } });
  };
  await assert.rejects(readObject(store, "one", 1_000), /Cannot read "s3:\/\/files\/"/);
  assert.ok(answers >= 6 && answers < 40, String(answers));
});
