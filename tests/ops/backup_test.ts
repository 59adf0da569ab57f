/** Backups: their contents, with and without concurrent writes, and failures. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { checkDatabase, openExport, UnusableDatabaseError } from "../../mod/engine/mod.ts";
import { extractArchive } from "../../mod/ops/backups/archive/mod.ts";
import { type BackupOptions, createBackup } from "../../mod/ops/backups/backup.ts";
import { BackupError, NoSpaceError } from "../../mod/ops/backups/backup_error.ts";
import { storedFiles } from "../../mod/ops/backups/snapshot/stored_files.ts";
import { WorkFolder } from "../../mod/ops/backups/snapshot/work_folder.ts";
import { newFileShape, tables } from "../../mod/storage/tables.ts";
import { commit, ConstantWriter, DataFolder } from "./support/data_folders.ts";

const BLOBS = ["ab", "cd"].map((digits) => digits.repeat(16));

function optionsFor(folder: DataFolder, changes: Partial<BackupOptions> = {}): BackupOptions {
  return {
    dataDir: folder.path,
    out: folder.at("out.tar.zst"),
    withAux: false,
    withFiles: false,
    includeSecret: false,
    ...changes,
  };
}

/** A folder with two notes, two files, an orphaned blob, a thumbnail, a log and a secret. */
async function filledFolder(): Promise<DataFolder> {
  const folder = await DataFolder.make();
  using writer = folder.openWriter();
  for (const blob of BLOBS) {
    await folder.putBlob(blob, new TextEncoder().encode(`contents of ${blob}`));
    commit(writer, (tx) => tx.insert("_storage", { blob, size: 1 }));
  }
  await folder.putBlob("ef".repeat(16), new Uint8Array(10));
  await Deno.mkdir(folder.at("storage/derived/ab"), { recursive: true });
  await Deno.writeTextFile(folder.at("storage/derived/ab/thumb"), "derived");
  commit(writer, (tx) => tx.insert("notes", { text: "one" }));
  commit(writer, (tx) => tx.insert("notes", { text: "two" }));
  using log = new DatabaseSync(folder.at("logs.db"));
  log.exec("PRAGMA journal_mode = WAL; CREATE TABLE lines (text); INSERT INTO lines VALUES ('started')");
  await Deno.writeTextFile(folder.at("auth_secret.key"), "secret");
  return folder;
}

function documents(database: string, table: string): Record<string, unknown>[] {
  using snapshot = openExport(database);
  return [...snapshot.documents(table)].map((text) => JSON.parse(text));
}

async function unpack(archive: string, folder: string): Promise<void> {
  await extractArchive((await Deno.open(archive)).readable, folder);
}

Deno.test("[BK10] a backup contains the database and the requested parts", async () => {
  await using folder = await filledFolder();
  const before = await folder.names();
  const plain = await createBackup(optionsFor(folder));
  assert.deepEqual([plain.parts, plain.ts, plain.missingFiles], [["database"], 4, 0]);
  assert.equal(plain.bytes, (await Deno.stat(plain.path)).size);
  assert.equal((await Deno.stat(plain.path)).mode! & 0o777, 0o600);
  await unpack(plain.path, folder.at("plain"));
  assert.equal(checkDatabase(folder.at("plain/data.db")).ts, 4);
  assert.deepEqual(documents(folder.at("plain/data.db"), "notes").map(({ text }) => text), ["one", "two"]);
  await Deno.remove(folder.at("plain"), { recursive: true });

  const all = await createBackup(optionsFor(folder, {
    out: folder.at("all.tar.zst"),
    withAux: true,
    withFiles: true,
    includeSecret: true,
  }));
  assert.deepEqual([...all.parts].sort(), ["database", "files", "log", "secret"]);
  await unpack(all.path, folder.at("all"));
  assert.equal(await Deno.readTextFile(folder.at("all/auth_secret.key")), "secret");
  using log = new DatabaseSync(folder.at("all/logs.db"));
  assert.equal(log.prepare("SELECT text FROM lines").get()?.text, "started");
  for (const blob of BLOBS) {
    const path = folder.at("all/storage", blob.slice(0, 2), blob);
    assert.equal(await Deno.readTextFile(path), `contents of ${blob}`);
  }
  // No orphaned files, no thumbnails.
  const shards = await Array.fromAsync(Deno.readDir(folder.at("all/storage")), ({ name }) => name);
  assert.deepEqual(shards.sort(), ["ab", "cd"]);
  await Deno.remove(folder.at("all"), { recursive: true });
  assert.deepEqual(await folder.names(), [...before, "all.tar.zst", "out.tar.zst"].sort());
  const storage = await Array.fromAsync(Deno.readDir(folder.at("storage")), ({ name }) => name);
  assert.deepEqual(storage.sort(), ["ab", "cd", "derived", "ef"]);
});

Deno.test("[BK11] [BK12] backups under a constant writer contain one state each, with every file it references", async () => {
  await using folder = await DataFolder.make();
  using _first = folder.openWriter();
  await using writer = await ConstantWriter.start(folder.path);
  const ts: number[] = [];
  for (let round = 0; round < 4; round++) {
    const before = await writer.commitsBeforeBackup();
    const out = folder.at(`${round}.tar.zst`);
    const summary = await createBackup(optionsFor(folder, { out, withFiles: true }));
    ts.push(summary.ts);
    assert.ok(await writer.commits() > before, "the writer waited for the backup");
    const unpacked = folder.at(`unpacked-${round}`);
    await unpack(out, unpacked);
    // Includes SQLite's integrity check.
    assert.equal(checkDatabase(join(unpacked, "data.db")).ts, summary.ts);
    const amounts = documents(join(unpacked, "data.db"), "accounts").map(({ amount }) => Number(amount));
    assert.equal(amounts.reduce((sum, amount) => sum + amount), 20 * 1000);
    assert.equal(summary.missingFiles, 0);
    for (const { blob } of documents(join(unpacked, "data.db"), "_storage")) {
      const path = join(unpacked, "storage", String(blob).slice(0, 2), String(blob));
      assert.equal(await Deno.readTextFile(path), blob);
    }
  }
  assert.ok(ts.every((at, round) => round === 0 || at > ts[round - 1]!), `the states were ${ts}`);
});

Deno.test("[BK12] missing files are counted, and the backup is created", async () => {
  await using folder = await filledFolder();
  await Deno.remove(folder.at("storage", "ab", BLOBS[0]!));
  const summary = await createBackup(optionsFor(folder, { withFiles: true }));
  assert.equal(summary.missingFiles, 1);
  await Deno.remove(folder.at("storage"), { recursive: true });
  const out = folder.at("bucket.tar.zst");
  assert.equal((await createBackup(optionsFor(folder, { out, withFiles: true }))).missingFiles, 2);
  assert.ok(!(await folder.names()).includes("storage"));
});

Deno.test("[BK12] backups use the table and layout of the storage", () => {
  assert.ok(storedFiles.table in tables);
  assert.ok(storedFiles.field in newFileShape);
});

Deno.test("[BK13] a backup never replaces a file, and reports missing files", async () => {
  await using folder = await filledFolder();
  await Deno.writeTextFile(folder.at("out.tar.zst"), "mine");
  const before = await folder.names();
  const fails = async (changes: Partial<BackupOptions>, expected: RegExp) => {
    await assert.rejects(createBackup(optionsFor(folder, changes)), (error) => {
      assert.ok(error instanceof BackupError || error instanceof UnusableDatabaseError, String(error));
      assert.match(error.message, expected);
      return true;
    });
  };
  const out = folder.at("new.tar.zst");
  await fails({}, /out\.tar\.zst" already exists/);
  assert.equal(await Deno.readTextFile(folder.at("out.tar.zst")), "mine");
  await fails({ out: folder.at("nowhere/new.tar.zst") }, /Cannot write/);
  await fails({ out, dataDir: folder.at("nowhere") }, /Data folder .* not found/);
  await fails({ out, dataDir: folder.at("storage") }, /No database in/);
  await Deno.remove(folder.at("auth_secret.key"));
  await fails({ out, includeSecret: true }, /auth_secret\.key: not found/);
  await Deno.writeTextFile(folder.at("storage/data.db"), "");
  await fails({ out, dataDir: folder.at("storage") }, /no writer has opened it yet/);
  await Deno.writeTextFile(folder.at("storage/data.db"), "no database at all, but text".repeat(100));
  await fails({ out, dataDir: folder.at("storage") }, /not a database/);
  await Deno.remove(folder.at("storage/data.db"));
  assert.deepEqual(await folder.names(), before.filter((name) => name !== "auth_secret.key"));
});

Deno.test("[BK11] the data folder is locked until the snapshot is open, so a restore in between changes nothing", async () => {
  await using folder = await filledFolder();
  await using restored = await DataFolder.make();
  restored.openWriter()[Symbol.dispose]();
  await Deno.writeTextFile(restored.at("auth_secret.key"), "another secret");
  let given = 0;
  const takeData = () =>
    Promise.resolve({
      [Symbol.dispose]() {
        given++;
        for (const name of ["data.db", "auth_secret.key"]) {
          Deno.renameSync(folder.at(name), restored.at(`old-${name}`));
          Deno.renameSync(restored.at(name), folder.at(name));
        }
      },
    });
  const { ts } = await createBackup(optionsFor(folder, { includeSecret: true }), {
    lockDataFolder: takeData,
  });
  assert.deepEqual([given, ts], [1, 4]);
  await unpack(folder.at("out.tar.zst"), folder.at("unpacked"));
  assert.equal(documents(folder.at("unpacked/data.db"), "notes").length, 2);
  assert.equal(await Deno.readTextFile(folder.at("unpacked/auth_secret.key")), "secret");
});

Deno.test("[BK14] concurrent backups of one folder run one after another", async () => {
  await using folder = await filledFolder();
  const outs = ["a", "b", "c"].map((name) => folder.at(`${name}.tar.zst`));
  const summaries = await Promise.all(
    outs.map((out) => createBackup(optionsFor(folder, { out, withFiles: true }))),
  );
  assert.deepEqual(summaries.map(({ ts, missingFiles }) => [ts, missingFiles]), Array(3).fill([4, 0]));
});

Deno.test("[BK15] leftovers of a killed backup are removed by the next one or at startup", async () => {
  await using folder = await filledFolder();
  const leave = async () => {
    await Deno.mkdir(folder.at("backup-work"));
    await Deno.writeTextFile(folder.at("backup-work/1.db"), "half a copy");
    await Deno.mkdir(folder.at("storage/backup-work/all/ab"), { recursive: true });
    await Deno.writeTextFile(folder.at(".out.tar.zst.0123456789ab.syncline-partial"), "half");
  };
  const whole = await folder.names();
  await leave();
  await createBackup(optionsFor(folder));
  assert.deepEqual(await folder.names(), [...whole, "out.tar.zst"].sort());
  await leave();
  await WorkFolder.removeAbandoned(folder.path);
  assert.ok(!(await folder.names()).includes("backup-work"));

  // A backup in progress is not changed.
  await using work = await WorkFolder.acquire(folder.path);
  await WorkFolder.removeAbandoned(folder.path);
  assert.ok((await Deno.stat(work.databases)).isDirectory);
});

Deno.test("[BK13] a log that does not fit on the disk is not copied", async () => {
  await using folder = await filledFolder();
  await Deno.remove(folder.at("logs.db"));
  await Deno.writeFile(folder.at("logs.db"), new Uint8Array());
  // Sparse, so it uses no space itself.
  await Deno.truncate(folder.at("logs.db"), 2 ** 42);
  const before = await folder.names();
  await assert.rejects(createBackup(optionsFor(folder, { withAux: true })), NoSpaceError);
  assert.deepEqual(await folder.names(), before);
});
