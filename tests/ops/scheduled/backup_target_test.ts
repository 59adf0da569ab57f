/** The target of scheduled backups: a folder, a bucket, and one that cannot be used. */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { BackupsConfig } from "../../../mod/config/config.ts";
import { StartError } from "../../../mod/config/start_error.ts";
import { objectLimits } from "../../../mod/kit/limits.ts";
import type { ObjectLocation } from "../../../mod/kit/locations/object_store.ts";
import { S3Store } from "../../../mod/kit/locations/s3_store.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { BackupFolder } from "../../../mod/ops/backups/backup_folder.ts";
import { BackupTarget } from "../../../mod/ops/backups/scheduled/mod.ts";
import { downloadArchive, newestArchives } from "../../../mod/ops/backups/stored_archives.ts";
import { openBackupTarget } from "../../../mod/server/features/backups.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { writeTestArchive } from "../support/archives.ts";
import { FakeBucket } from "./fake_bucket.ts";

const NAME = "scheduled-20300102T030405Z-0123abcd.tar.zst";
const archive = new Uint8Array(100_000).map((_, at) => (at * 31) % 251);
const log = () => {};
const config = (to: ObjectLocation) => ({ backups: { to, everyMs: 60_000, keep: 1 } as BackupsConfig });
const bucketOf = (service: FakeBucket, prefix = "") =>
  ({ kind: "bucket", bucket: service.location(prefix) }) as const;

Deno.test("[SB5] [SB6] [SB8] a backup is stored under its name, listed, fetched and removed", async () => {
  await using folder = new TempFolder();
  await using service = new FakeBucket();
  for (
    const location of [{ kind: "folder", path: folder.at("made/for/backups") } as const, bucketOf(service)]
  ) {
    await using target = new BackupTarget(location);
    assert.deepEqual(await target.open(), { unreachable: null });
    await target.check();
    assert.deepEqual(await target.list(), []);
    await Deno.writeFile(folder.at(NAME), archive);
    await target.put(NAME, folder.at(NAME));
    assert.deepEqual(await target.list(), [NAME]);
    assert.equal(await target.fetch(NAME, folder.at("fetched")), true);
    assert.deepEqual(await Deno.readFile(folder.at("fetched")), archive);
    assert.equal(await target.fetch("scheduled-monday.tar.zst", folder.at("none")), false);
    assert.equal(await target.fetch(NAME.replace("0123", "4567"), folder.at("none")), false);
    await Deno.writeFile(folder.at(NAME), new Uint8Array(1));
    await assert.rejects(target.put(NAME, folder.at(NAME)), /already exists/);
    await Deno.remove(folder.at("fetched"));
    await target.fetch(NAME, folder.at("fetched"));
    assert.deepEqual(await Deno.readFile(folder.at("fetched")), archive, "nothing is overwritten");
    await Deno.remove(folder.at("fetched"));
    await target.remove(NAME);
    await target.remove(NAME);
    assert.deepEqual(await target.list(), []);
  }
});

Deno.test("[SB5] names of others are left alone, also in the folder of manual backups", async () => {
  await using folder = new TempFolder();
  const byHand = "backup-20300102T030405Z-0123abcd.tar.zst";
  for (const name of [NAME, byHand]) await writeTestArchive(folder.at(name));
  const listed = await (await BackupFolder.open(folder.path)).list();
  assert.deepEqual(listed.map(({ name }) => name).sort(), [byHand, NAME]);
  await Deno.mkdir(folder.at(NAME.replace("0123", "4567")));
  await using target = new BackupTarget({ kind: "folder", path: folder.path });
  assert.deepEqual(await target.list(), [NAME]);
  await using service = new FakeBucket();
  service.objects.set("app/scheduled-monday.tar.zst", archive);
  service.uploads.set("ours", { key: `app/${NAME}`, parts: [] });
  service.uploads.set("theirs", { key: "app/scheduled-monday.tar.zst", parts: [] });
  await using bucket = new BackupTarget(bucketOf(service, "app/"));
  await bucket.open();
  assert.deepEqual(await bucket.list(), []);
  assert.deepEqual([...service.uploads.keys()], ["theirs"], "unfinished uploads of a killed server");
});

Deno.test("[SB6] [SB8] a killed server's half-written files are removed from a folder once they are old", async () => {
  await using folder = new TempFolder();
  const halves = ["old", "new"].map((age) => folder.at(`.${age}0123456789ab.syncline-partial`));
  for (const half of halves) await Deno.writeTextFile(half, "half");
  const old = (Date.now() - opsLimits.partialKeptMs) / 1_000 - 10;
  await Deno.utime(halves[0] ?? "", old, old);
  await using target = new BackupTarget({ kind: "folder", path: folder.path });
  await target.open();
  assert.deepEqual([...Deno.readDirSync(folder.path)].map(({ name }) => join(folder.path, name)), [
    halves[1],
  ]);
});

Deno.test("[SB8] a large archive is uploaded in parts", async () => {
  await using folder = new TempFolder();
  await using service = new FakeBucket();
  const large = new Uint8Array(opsLimits.bucketPartBytes + 10).map((_, at) => at % 251);
  await Deno.writeFile(folder.at(NAME), large);
  await using target = new BackupTarget(bucketOf(service));
  await target.put(NAME, folder.at(NAME));
  assert.deepEqual(service.objects.get(NAME), large);
  const parts = service.requests.filter(({ method, query }) => method === "PUT" && query.has("partNumber"));
  assert.equal(parts.length, 2);
  assert.ok(opsLimits.bucketPartBytes >= objectLimits.partBytes);
});

Deno.test("[SB6] [SB8] a target that refuses prevents the start; an unreachable bucket does not", async () => {
  await using folder = new TempFolder();
  await Deno.writeTextFile(folder.at("file"), "in the way");
  await assert.rejects(
    openBackupTarget({ config: config({ kind: "folder", path: folder.at("file/backups") }), log }),
    /^StartError: Scheduled backups: Cannot open ".*file\/backups": Not a directory/,
  );
  const service = new FakeBucket();
  const open = () => openBackupTarget({ config: config(bucketOf(service, "app/")), log });
  service.fault = () => service.refusal("AccessDenied", 403);
  await assert.rejects(open(), /Scheduled backups: Cannot list "s3:\/\/files\/app\/": AccessDenied/);
  service.fault = ({ method }) => method === "POST" ? service.refusal("AccessDenied", 403) : null;
  await assert.rejects(open(), /Cannot write to/, "it may be listed but not written");
  await service[Symbol.asyncDispose]();
  await using target = new BackupTarget(bucketOf(service));
  assert.match((await target.open()).unreachable ?? "", /refused/i);
  await assert.rejects(target.check());
});

Deno.test("[PG7] a target used before is not waited for, and is opened when available", async () => {
  await using folder = new TempFolder();
  const to = { kind: "folder", path: folder.at("file/backups") } as const;
  await Deno.writeTextFile(folder.at("file"), "in the way");
  await assert.rejects(openBackupTarget({ config: config(to), log }), StartError);
  await using target = await openBackupTarget({ config: config(to), later: true, log }) ?? assert.fail();
  assert.equal(target.location, to.path);
  await assert.rejects(target.check(), /Cannot open/);
  await Deno.remove(folder.at("file"));
  await Deno.mkdir(folder.at("file"));
  await target.check();
  await Deno.remove(folder.at("file/backups"));
  await assert.rejects(target.check(), /does not exist\. Mount its disk/, "it is not created again");
});

Deno.test("[PG7] an unresponsive bucket delays neither leadership nor shutdown", async () => {
  await using service = new FakeBucket();
  const never = Promise.withResolvers<Response>();
  service.fault = () => never.promise;
  const target = await openBackupTarget({ config: config(bucketOf(service)), later: true, log }) ??
    assert.fail();
  assert.equal(target.location, "s3://files/");
  const checked = assert.rejects(target.check(), /closed/);
  await target[Symbol.asyncDispose]();
  await checked;
  await assert.rejects(target.check(), /closed/);
  never.resolve(new Response());
});

Deno.test("[SB10] an archive that disappears during its download is reported, and leaves no file", async () => {
  await using folder = new TempFolder();
  await using service = new FakeBucket();
  await using store = new S3Store(service.location());
  const options = { name: "a.tar.zst", path: folder.at("new") };
  assert.equal(await downloadArchive(store, options), false);
  service.objects.set("a.tar.zst", archive);
  service.fault = ({ method, headers }) => {
    if (method !== "GET") return null;
    if (headers.get("range") !== null) return service.refusal("NoSuchKey", 404);
    const body = ReadableStream.from([archive.slice(0, 100)]);
    return new Response(body, { headers: { ETag: '"one"', "Content-Length": String(archive.length) } });
  };
  await assert.rejects(downloadArchive(store, options), /"a\.tar\.zst" was deleted while it was read/);
  assert.deepEqual([...Deno.readDirSync(folder.path)], []);
});

Deno.test("[SB10] the newest archives of a location are listed, without subfolders", async () => {
  await using service = new FakeBucket();
  await using store = new S3Store(service.location("app/"));
  for (let at = 10; at < 35; at++) service.objects.set(`app/${at}.tar.zst`, archive);
  service.objects.set("app/99.txt", archive);
  service.objects.set("app/deeper/99.tar.zst", archive);
  const names = (await newestArchives(store)).map(({ name }) => name);
  assert.deepEqual(names, Array.from({ length: 10 }, (_, at) => `${34 - at}.tar.zst`));
});
