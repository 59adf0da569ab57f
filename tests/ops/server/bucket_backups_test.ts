/** Scheduled backups in a bucket of a real S3 server, restores from it, and location tests. */
import assert from "node:assert/strict";
import { CreateBucketCommand, DeleteBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type BucketLocation, readObject } from "../../../mod/kit/locations/object_store.ts";
import { S3Store } from "../../../mod/kit/locations/s3_store.ts";
import { BackupTarget } from "../../../mod/ops/backups/scheduled/mod.ts";
import { scheduledAt } from "../../../mod/ops/backups/scheduled/backup_target.ts";
import { Commands, type Ran } from "../../support/commands.ts";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { testConfig } from "../../server/support/fake_backend.ts";
import { startWorld } from "../admin/support/world.ts";
import { needs, swift } from "../../support/services.ts";
import { SwiftServer } from "../../storage/support/swift_server.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";

const MiB = 1024 * 1024;
const functions = "tests/storage/functions";

async function namesIn(place: BucketLocation): Promise<string[]> {
  await using bucket = new S3Store(place);
  return await Array.fromAsync(bucket.list(""), ({ name }) => name);
}

const commands = { restore: Commands.with("restore"), restoreRemote: Commands.with("restoreRemote") };

function restore(
  args: readonly string[],
  { set, place }: { readonly set: keyof typeof commands; readonly place: BucketLocation },
): Promise<Ran> {
  return commands[set].run(["restore", ...args], {
    env: {
      SYNCLINE_S3_ENDPOINT: place.endpoint ?? "",
      SYNCLINE_S3_ACCESS_KEY_ID: place.accessKeyId,
      SYNCLINE_S3_SECRET_ACCESS_KEY: place.secretAccessKey,
    },
  });
}

Deno.test({
  ...needs(swift, "backups in a bucket"),
  fn: async (t) => {
    await using swift = await SwiftServer.start();
    const { endpoint, accessKeyId, secretAccessKey } = swift;
    const credentials = { accessKeyId, secretAccessKey };
    const client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials });
    await client.send(new CreateBucketCommand({ Bucket: "backups" }));
    const place: BucketLocation = {
      bucket: "backups",
      prefix: "app/",
      region: "us-east-1",
      endpoint,
      ...credentials,
    };
    await using tempFolder = new TempFolder();
    const folder = tempFolder.path;

    await t.step(
      "[SB8] a large archive is uploaded in parts, intact, listed and removed; other objects stay",
      async () => {
        await using target = new BackupTarget({ kind: "bucket", bucket: { ...place, prefix: "parts/" } });
        assert.deepEqual(await target.open(), { unreachable: null });
        const name = "scheduled-20300102T030405Z-0123abcd.tar.zst";
        const bytes = new Uint8Array(12 * MiB + 345).map((_, at) => (at * 31) >> 3);
        await Deno.writeFile(join(folder, name), bytes);
        await target.put(name, join(folder, name));
        await using bucket = new S3Store({ ...place, prefix: "parts/" });
        assert.deepEqual(await readObject(bucket, name, bytes.length), bytes);
        await bucket.put("scheduled-monday.tar.zst", new Uint8Array(3));
        assert.deepEqual(await target.list(), [name]);
        await target.remove(name);
        await target.remove(name);
        assert.deepEqual(await namesIn({ ...place, prefix: "parts/" }), ["scheduled-monday.tar.zst"]);
      },
    );

    await t.step("[SB8] a wrong key or bucket prevents the start", async () => {
      for (const wrong of [{ secretAccessKey: "wrong" }, { bucket: "none" }]) {
        const target = new BackupTarget({ kind: "bucket", bucket: { ...place, ...wrong } });
        await assert.rejects(target.open(), /Cannot list/);
      }
    });

    await t.step("[DA10] buckets for files, replica and backups are tested step by step", async () => {
      await client.send(new CreateBucketCommand({ Bucket: "files" }));
      const [files, replica, archives] = [
        { ...place, bucket: "files", prefix: "" },
        { ...place, prefix: "replica/" },
        { ...place, prefix: "archives/" },
      ];
      const { storage } = testConfig({ dataDir: "", functionsDir: "" });
      await using world = await startWorld({
        config: {
          storage: { ...storage, s3: files },
          replication: {
            to: { kind: "bucket", bucket: replica },
            everyMs: 60_000,
            snapshotEveryMs: 86_400_000,
            keepMs: 86_400_000,
            maxPendingBytes: 2 ** 28,
            heartbeatUrl: null,
          },
          backups: { to: { kind: "bucket", bucket: archives }, everyMs: 86_400_000, keep: 3 },
        },
      });
      const tried = async (of: string) =>
        (await world.server.post(`/api/admin/${of}/check`, {}, { bearer: world.admin })).body;
      const whole = ["list", "write", "read", "remove"].map((step) => ({ step, error: null }));
      assert.deepEqual(await tried("places/files"), { place: "s3://files/", steps: whole });
      assert.deepEqual(await tried("places/replica"), { place: "s3://backups/replica/", steps: whole });
      assert.deepEqual(await tried("scheduled-backups"), { place: "s3://backups/archives/", error: null });
      assert.deepEqual(await namesIn(files), [], "nothing is left there");
      await client.send(new DeleteBucketCommand({ Bucket: "files" }));
      const { steps } = await tried("places/files");
      assert.deepEqual(steps.map(({ step }: { step: string }) => step), ["list"]);
      assert.match(steps[0].error, /bucket/i);
      client.destroy();
    });

    let contents = "";
    let storageId = "";
    await t.step("[SB7] [SB8] a server process backs up into the bucket", async () => {
      const flags = Object.entries({
        "backup-every": "15m",
        "backup-to": "s3://backups/app",
        "s3-endpoint": endpoint,
        "s3-access-key-id": accessKeyId,
        "s3-secret-access-key": secretAccessKey,
      }).flatMap(([flag, value]) => [`--${flag}`, value]);
      const dataDir = join(folder, "data");
      {
        // Without a schedule first, so that there is data to back up.
        await using server = await ServerProcess.start({ dataDir, functions });
        const url = await server.call("mutation", "files:generate");
        contents = randomBytes(200_000).toString("hex");
        const uploaded = await fetch(`http://127.0.0.1:${server.port}${url}`, {
          method: "POST",
          body: contents,
        });
        ({ storageId } = await uploaded.json());
      }
      await using server = await ServerProcess.start({ dataDir, functions, flags });
      await until(async () => (await namesIn(place)).length !== 0);
      await server.stop();
      const [name = "", ...more] = await namesIn(place);
      assert.deepEqual(more, []);
      assert.notEqual(scheduledAt(name), null, name);
    });

    await t.step("[SB10] a location without an archive name lists the newest archives", async () => {
      const [name = ""] = await namesIn(place);
      for (const archive of ["s3://backups/app/", "s3://backups/app", "s3://backups/app/nope.tar.zst"]) {
        const { code, err } = await restore([archive, "--data", join(folder, "new")], {
          set: "restoreRemote",
          place,
        });
        assert.equal(code, 1, err);
        assert.ok(err.includes(`s3://backups/app/${name}  `), err);
        assert.doesNotMatch(err, /\n\s+at /);
      }
      const elsewhere = await restore(["s3://backups/other/", "--data", join(folder, "new")], {
        set: "restoreRemote",
        place,
      });
      assert.match(elsewhere.err, /The location contains no archives/);
      const wrong = await restore([`s3://backups/app/${name}`, "--data", join(folder, "new")], {
        set: "restoreRemote",
        place: { ...place, secretAccessKey: "wrong" },
      });
      assert.equal(wrong.code, 1);
      assert.match(wrong.err, /Cannot download "s3:.*Nothing has changed/);
      const bad = await restore(["s3://B/", "--data", join(folder, "new")], { set: "restoreRemote", place });
      assert.equal(bad.code, 2, bad.err);
    });

    await t.step("[SB11] the task without network permission names the one that has it", async () => {
      const [name = ""] = await namesIn(place);
      const refused = await restore([`s3://backups/app/${name}`, "--data", join(folder, "new")], {
        set: "restore",
        place,
      });
      assert.equal(refused.code, 1);
      assert.match(refused.err, /use deno task restore:remote/);
    });

    await t.step(
      "[SB7] [SB10] after the loss of the disk the archive restores data and files",
      async () => {
        const [name = ""] = await namesIn(place);
        const dataDir = join(folder, "new");
        const { code, out, err } = await restore([`s3://backups/app/${name}`, "--data", dataDir], {
          set: "restoreRemote",
          place,
        });
        assert.equal(code, 0, err);
        assert.ok(out.includes(`Restored "${name}"`), out);
        await assert.rejects(Deno.stat(join(dataDir, "incoming")), Deno.errors.NotFound);
        await using server = await ServerProcess.start({ dataDir, functions });
        const response = await fetch(`http://127.0.0.1:${server.port}/api/storage/${storageId}`);
        assert.equal(await response.text(), contents);
      },
    );
  },
});
