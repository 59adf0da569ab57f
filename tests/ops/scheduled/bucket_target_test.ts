/** Failures between a server and its backup bucket, with a controllable service. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Bucket } from "../../../mod/kit/locations/bucket.ts";
import { downloadArchive, newestArchives } from "../../../mod/ops/backups/bucket_archives.ts";
import { BackupBucketTarget } from "../../../mod/ops/backups/scheduled/bucket_target.ts";
import { FakeBucket } from "./fake_bucket.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { pause } from "../../support/waiting.ts";

const NAME = "scheduled-20300102T030405Z-0123abcd.tar.zst";
const archive = new Uint8Array(100_000).map((_, at) => (at * 31) % 251);

async function withArchive(run: (path: string) => Promise<void>): Promise<void> {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  await Deno.writeFile(join(folder, NAME), archive);
  await run(join(folder, NAME));
}

Deno.test("[SB8] an archive is uploaded in parts; startup tests listing and writing without leftovers", () =>
  withArchive(async (path) => {
    await using service = new FakeBucket();
    service.objects.set("app/scheduled-monday.tar.zst", archive);
    const { target, unreachable } = await BackupBucketTarget.open(service.place("app/"), {
      partBytes: 30_000,
    });
    await using _target = target;
    assert.equal(unreachable, null);
    assert.deepEqual([service.objects.size, service.uploads.size], [1, 0]);
    await target.put(NAME, path);
    assert.deepEqual(service.objects.get(`app/${NAME}`), archive);
    const parts = service.requests.filter(({ method, query }) => method === "PUT" && query.has("partNumber"));
    assert.equal(parts.length, 2);
    assert.deepEqual(await target.list(), [NAME], "names of others are left alone");
    await target.remove(NAME);
    assert.deepEqual([...service.objects.keys()], ["app/scheduled-monday.tar.zst"]);
  }));

Deno.test("[SB8] an upload that fails halfway is reported and aborted", () =>
  withArchive(async (path) => {
    await using service = new FakeBucket();
    const { target } = await BackupBucketTarget.open(service.place(), { partBytes: 30_000 });
    await using _target = target;
    service.fault = ({ query }) =>
      query.get("partNumber") === "2" ? service.refusal("QuotaExceeded", 403) : null;
    await assert.rejects(target.put(NAME, path), /Not for you/);
    assert.deepEqual([service.objects.size, service.uploads.size], [0, 0]);
  }));

Deno.test("[SB8] an incomplete upload is not a backup", () =>
  withArchive(async (path) => {
    await using service = new FakeBucket();
    const { target } = await BackupBucketTarget.open(service.place(), { partBytes: 30_000 });
    await using _target = target;
    service.fault = ({ method }) =>
      method === "HEAD" ? new Response(null, { headers: { "Content-Length": "7" } }) : null;
    await assert.rejects(target.put(NAME, path), /The bucket has stored 7 of 100000 bytes/);
  }));

Deno.test("[SB8] unfinished uploads of a killed server are aborted at the next start, but no others", async () => {
  await using service = new FakeBucket();
  service.uploads.set("ours", { key: NAME, parts: [] });
  service.uploads.set("theirs", { key: "scheduled-monday.tar.zst", parts: [] });
  const { target } = await BackupBucketTarget.open(service.place());
  await using _target = target;
  assert.deepEqual([...service.uploads.keys()], ["theirs"]);
});

Deno.test("[SB8] a rejecting service prevents the start; an unreachable one does not", async () => {
  const service = new FakeBucket();
  service.fault = () => service.refusal("AccessDenied", 403);
  await assert.rejects(
    BackupBucketTarget.open(service.place("app/")),
    /^BackupError: Cannot use s3:\/\/files\/app\/: AccessDenied/,
  );
  service.fault = ({ method }) => method === "POST" ? service.refusal("AccessDenied", 403) : null;
  await assert.rejects(
    BackupBucketTarget.open(service.place()),
    /Cannot use/,
    "it may be listed but not written",
  );
  await service[Symbol.asyncDispose]();
  const { target, unreachable } = await BackupBucketTarget.open(service.place());
  await using _target = target;
  assert.match(unreachable ?? "", /refused/i);
  await assert.rejects(target.check());
});

Deno.test("[SB8] an unresponsive service and a server stop abort a request", async () => {
  await using service = new FakeBucket();
  const never = Promise.withResolvers<Response>();
  const stopping = new AbortController();
  const { target } = await BackupBucketTarget.open(service.place(), {
    signal: stopping.signal,
    requestMs: 50,
  });
  await using _target = target;
  service.fault = () => never.promise;
  await assert.rejects(target.check(), /did not answer within 0.05 s/);
  stopping.abort();
  await assert.rejects(target.check(), /abort/i);
  never.resolve(new Response());
});

Deno.test("[SB10] an interrupted download is resumed", () =>
  withArchive(async (path) => {
    await using service = new FakeBucket();
    service.objects.set("a.tar.zst", archive);
    // Each response ends or stalls after at most 40,000 bytes.
    let answers = 0;
    const ended = Promise.withResolvers<void>();
    service.fault = ({ method, key, headers }) => {
      if (method !== "GET" || key === "") return null;
      const from = Number(headers.get("range")?.match(/^bytes=(\d+)-/)?.[1] ?? 0);
      assert.equal(headers.get("if-match"), answers === 0 ? null : '"one"');
      const stalls = answers++ === 1;
      let sent = false;
      const body = new ReadableStream({
        async pull(controller) {
          if (!sent) controller.enqueue(archive.slice(from, from + 40_000));
          else if (from + 40_000 >= archive.length) controller.close();
          else if (stalls) await ended.promise;
          else {
            // Sent data must arrive before the connection is cut.
            await pause(50);
            controller.close();
          }
          sent = true;
        },
      });
      const length = String(archive.length - from);
      return new Response(body, { headers: { ETag: '"one"', "Content-Length": length } });
    };
    using bucket = new Bucket(service.place());
    assert.equal(
      await downloadArchive(bucket, { name: "a.tar.zst", path: `${path}.new`, stallMs: 200 }),
      true,
    );
    assert.deepEqual(await Deno.readFile(`${path}.new`), archive);
    assert.equal(answers, 3);
    ended.resolve();
  }));

Deno.test("[SB10] a stalled download is aborted without leftovers; a missing archive returns false", () =>
  withArchive(async (path) => {
    await using service = new FakeBucket();
    using bucket = new Bucket(service.place());
    const target = `${path}.new`;
    assert.equal(await downloadArchive(bucket, { name: "a.tar.zst", path: target }), false);
    service.objects.set("a.tar.zst", archive);
    let answers = 0;
    service.fault = ({ method }) => {
      if (method !== "GET") return null;
      answers++;
      const body = new ReadableStream({ start: (controller) => controller.close() });
      return new Response(body, { headers: { ETag: '"one"', "Content-Length": String(archive.length) } });
    };
    await assert.rejects(downloadArchive(bucket, { name: "a.tar.zst", path: target }));
    assert.ok(answers >= 6 && answers < 40, String(answers));
    const names = await Array.fromAsync(Deno.readDir(join(path, "..")), ({ name }) => name);
    assert.deepEqual(names, [NAME]);
  }));

Deno.test("[SB10] the newest archives of a location are listed, without subfolders", async () => {
  await using service = new FakeBucket();
  using bucket = new Bucket(service.place("app/"));
  for (let at = 10; at < 35; at++) service.objects.set(`app/${at}.tar.zst`, archive);
  service.objects.set("app/99.txt", archive);
  service.objects.set("app/deeper/99.tar.zst", archive);
  const names = (await newestArchives(bucket)).map(({ name }) => name);
  assert.deepEqual(names, Array.from({ length: 10 }, (_, at) => `${34 - at}.tar.zst`));
});
