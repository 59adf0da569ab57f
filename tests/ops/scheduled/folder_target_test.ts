/** A folder as target of scheduled backups: on the same disk, on another one, and missing. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { BackupFolder } from "../../../mod/ops/backups/backup_folder.ts";
import { writeTestArchive } from "../support/archives.ts";
import {
  BackupFolderTarget,
  type BackupFolderTargetOptions,
} from "../../../mod/ops/backups/scheduled/folder_target.ts";
import { TempFolder } from "../../support/temp_folder.ts";

const NAME = "scheduled-20300102T030405Z-0123abcd.tar.zst";

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  await run(folder);
}

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();
}

/** As between two disks. */
const toAnotherDisk: BackupFolderTargetOptions["rename"] = () =>
  Promise.reject(Object.assign(new Error("Invalid cross-device link"), { code: "EXDEV" }));

const disks: [title: string, options: BackupFolderTargetOptions][] = [
  ["the same disk", {}],
  ["another disk", { rename: toAnotherDisk }],
];

for (const [title, options] of disks) {
  Deno.test(`[SB6] the folder is created, and an archive is stored on ${title} completely`, () =>
    withFolder(async (folder) => {
      const place = join(folder, "made/for/backups");
      await using target = await BackupFolderTarget.open(place, options);
      assert.deepEqual(await namesIn(place), []);
      assert.equal(((await Deno.stat(place)).mode ?? 0) & 0o777, 0o700);
      const bytes = new Uint8Array(3_000_000).map((_, at) => at % 251);
      await Deno.writeFile(join(folder, NAME), bytes, { mode: 0o600 });
      await target.put(NAME, join(folder, NAME));
      assert.deepEqual(await Deno.readFile(join(place, NAME)), bytes);
      assert.equal(((await Deno.stat(join(place, NAME))).mode ?? 0) & 0o777, 0o600);
      assert.deepEqual(await namesIn(place), [NAME]);
      assert.deepEqual(await target.list(), [NAME]);
      await target.remove(NAME);
      await target.remove(NAME);
      assert.deepEqual(await target.list(), []);
    }));

  Deno.test(`[SB6] nothing on ${title} is overwritten, and failures leave nothing behind`, () =>
    withFolder(async (folder) => {
      const place = join(folder, "backups");
      await using target = await BackupFolderTarget.open(place, options);
      await Deno.writeTextFile(join(place, NAME), "another");
      await Deno.writeTextFile(join(folder, NAME), "new");
      await assert.rejects(target.put(NAME, join(folder, NAME)), /already exists/);
      assert.equal(await Deno.readTextFile(join(place, NAME)), "another");
      await Deno.remove(join(place, NAME));
      await assert.rejects(target.put(NAME, join(folder, "gone")));
      assert.deepEqual(await namesIn(place), []);
    }));
}

Deno.test("[SB6] an aborted copy to another disk leaves nothing behind", () =>
  withFolder(async (folder) => {
    const place = join(folder, "backups");
    const stopping = new AbortController();
    await using target = await BackupFolderTarget.open(place, {
      rename: toAnotherDisk,
      signal: stopping.signal,
    });
    await Deno.writeFile(join(folder, NAME), new Uint8Array(20_000_000));
    const put = target.put(NAME, join(folder, NAME));
    stopping.abort();
    await assert.rejects(put);
    assert.deepEqual(await namesIn(place), []);
  }));

Deno.test("[SB6] a missing folder is reported, and not created again on the disk below", () =>
  withFolder(async (folder) => {
    const place = join(folder, "mounted");
    await using target = await BackupFolderTarget.open(place);
    await target.check();
    await Deno.remove(place);
    await assert.rejects(target.check(), /mounted" no longer exists\. Mount its disk/);
    await assert.rejects(Deno.stat(place), Deno.errors.NotFound);
    await Deno.writeTextFile(place, "a file");
    await assert.rejects(target.check(), /no longer exists/);
  }));

Deno.test("[SB5] links and folders with names of scheduled backups are ignored", () =>
  withFolder(async (folder) => {
    await using target = await BackupFolderTarget.open(folder);
    await Deno.mkdir(join(folder, NAME));
    await Deno.symlink("elsewhere", join(folder, NAME.replace("0123", "4567")));
    await Deno.writeTextFile(join(folder, "backup-20300102T030405Z-0123abcd.tar.zst"), "");
    assert.deepEqual(await target.list(), []);
  }));

Deno.test("[SB5] in the folder of manual backups both kinds are listed, and the schedule manages only its own", () =>
  withFolder(async (folder) => {
    const byHand = "backup-20300102T030405Z-0123abcd.tar.zst";
    for (const name of [NAME, byHand]) await writeTestArchive(join(folder, name));
    const listed = await (await BackupFolder.open(folder)).list();
    assert.deepEqual(listed.map(({ name }) => name).sort(), [byHand, NAME]);
    await using target = await BackupFolderTarget.open(folder);
    assert.deepEqual(await target.list(), [NAME]);
  }));
