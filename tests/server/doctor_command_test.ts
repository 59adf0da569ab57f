/** The command `doctor` on intact folders, on damaged ones, and on one with concurrent writes. */
import assert from "node:assert/strict";
import { DatabaseSync, type DatabaseSyncOptions } from "node:sqlite";
import { exitCodes, runCommandLine } from "../../mod/cli/command_line.ts";
import { doctorCommand, runDoctor } from "../../mod/cli/doctor_command.ts";
import type { Finding } from "../../mod/ops/doctor/mod.ts";
import { assessSpace, checkClock } from "../../mod/ops/doctor/mod.ts";
import { opsLimits } from "../../mod/ops/limits.ts";
import { LogStore } from "../../mod/ops/log/store/log_store.ts";
import { storageLimits } from "../../mod/storage/limits.ts";
import { commit, ConstantWriter, DataFolder } from "../ops/support/data_folders.ts";

const BLOBS = ["ab", "cd"].map((digits) => digits.repeat(16));
const ORPHAN = "ef".repeat(16);

async function soundFolder(): Promise<DataFolder> {
  const folder = await DataFolder.make();
  using writer = folder.openWriter();
  for (const blob of BLOBS) {
    await folder.putBlob(blob, new Uint8Array(3));
    commit(writer, (tx) => tx.insert("_storage", { blob, size: 3 }));
  }
  commit(writer, (tx) => tx.insert("notes", { text: "one" }));
  LogStore.open(folder.at("logs.db"), { retention: { keepMs: 1e9, bytesMax: 1e9 } })
    [Symbol.dispose]();
  return folder;
}

/** Discards the progress. */
const silent = { terminal: { write() {} } };

interface Diagnosis {
  readonly code: number;
  readonly status: string;
  readonly of: Readonly<Record<string, Finding>>;
}

async function diagnosis(folder: DataFolder): Promise<Diagnosis> {
  let text = "";
  const options = { data: folder.path, json: true, storage: null };
  const code = await runDoctor(options, (more) => Promise.resolve(void (text += more)), silent);
  const { status, checks } = JSON.parse(text) as { status: string; checks: Finding[] };
  assert.deepEqual(
    checks.map(({ check }) => check),
    ["integrity", "indexes", "files", "log", "space", "clock"],
  );
  return { code, status, of: Object.fromEntries(checks.map((finding) => [finding.check, finding])) };
}

/** Changes the file without the engine. */
function tamper(path: string, sql: string): void {
  const options = { defensive: false } as DatabaseSyncOptions;
  using db = new DatabaseSync(path, options) as DatabaseSync & Disposable;
  db.exec(`PRAGMA trusted_schema = ON; ${sql}`);
}

Deno.test("[OP3] [OP4] an intact folder: one line for each check, each step printed at its start, and nothing is written", async () => {
  await using folder = await soundFolder();
  const before = await Promise.all((await folder.names()).map(async (name) => [name, await digest(name)]));
  const lines: string[] = [];
  const options = { data: folder.path, json: false, storage: null };
  const steps: string[] = [];
  const terminal = { write: (text: string) => steps.push(text) };
  const print = (line: string) => Promise.resolve(void lines.push(line));
  assert.equal(await runDoctor(options, print, { terminal }), exitCodes.ok);
  assert.match(lines.join(""), /^ok +integrity +the database is intact at ts 3\n/);
  assert.match(lines.join(""), /^ok +indexes +3 tables, 3 documents: all indexes/m);
  assert.match(lines.join(""), /^ok +files +2 files, all with contents$/m);
  assert.match(lines.join(""), /^ok +log +the execution log is intact$/m);
  assert.equal(lines.length, 6);
  assert.deepEqual(steps, [
    "Checking the database file\n",
    "Checking documents and indexes, 3 documents\n",
    "Checking file contents, 2 files\n",
    "Checking the execution log\n",
  ]);
  assert.deepEqual(
    await Promise.all((await folder.names()).map(async (name) => [name, await digest(name)])),
    before,
  );

  async function digest(name: string): Promise<string> {
    const path = folder.at(name);
    if ((await Deno.stat(path)).isDirectory) return "folder";
    return new Uint8Array(await crypto.subtle.digest("SHA-256", await Deno.readFile(path))).toHex();
  }
});

Deno.test("[OP5] missing contents fail; orphaned contents are reported once they are old", async () => {
  await using folder = await soundFolder();
  await folder.putBlob(ORPHAN, new Uint8Array(3));
  assert.equal((await diagnosis(folder)).of["files"]?.status, "ok", "an upload may be in progress");
  const old = new Date(Date.now() - 2 * storageLimits.orphanAgeMs);
  await Deno.utime(folder.at("storage/ef", ORPHAN), old, old);
  const left = await diagnosis(folder);
  assert.deepEqual([left.code, left.status, left.of["files"]?.status], [exitCodes.ok, "warn", "warn"]);
  assert.match(left.of["files"]!.message, /^1 orphaned file contents/);
  await Deno.remove(folder.at("storage/ab", BLOBS[0]!));
  const lost = await diagnosis(folder);
  assert.deepEqual([lost.code, lost.status, lost.of["files"]?.status], [exitCodes.failed, "fail", "fail"]);
  assert.match(lost.of["files"]!.message, /contents of 1 of 2 files are missing, such as "abab/);
});

Deno.test("[OP5] an index that lacks a document, a file of noise and a damaged log are named", async () => {
  await using folder = await soundFolder();
  await Deno.writeTextFile(folder.at("logs.db"), "no log ".repeat(1_000));
  const log = await diagnosis(folder);
  assert.deepEqual([log.code, log.of["log"]?.status], [exitCodes.ok, "warn"]);
  const number = (() => {
    using db = new DatabaseSync(folder.at("data.db"), { readOnly: true }) as DatabaseSync & Disposable;
    return db.prepare(
      "SELECT i.number FROM syncline_indexes i JOIN syncline_tables t ON t.number = i.tableNumber WHERE t.name = 'notes'",
    ).get()?.["number"];
  })();
  tamper(folder.at("data.db"), `DELETE FROM i${number}`);
  const unlike = await diagnosis(folder);
  assert.deepEqual([unlike.code, unlike.of["integrity"]?.status, unlike.of["indexes"]?.status], [
    exitCodes.failed,
    "ok",
    "fail",
  ]);
  assert.match(unlike.of["indexes"]!.message, /index "\w+" of table "\w+" does not hold/);
  await Deno.writeTextFile(folder.at("data.db"), "noise ".repeat(10_000));
  for (const name of ["data.db-wal", "data.db-shm"]) await Deno.remove(folder.at(name)).catch(() => {});
  const noise = await diagnosis(folder);
  assert.deepEqual([noise.code, noise.of["integrity"]?.status, noise.of["indexes"]?.status], [
    exitCodes.failed,
    "fail",
    "warn",
  ]);
  assert.equal(noise.of["files"]?.status, "warn");
});

Deno.test("[OP4] [OP5] no errors are found while a process continuously commits, stores and deletes", async () => {
  await using folder = await DataFolder.make();
  await using writer = await ConstantWriter.start(folder.path);
  const before = await writer.commits();
  let looks = 0;
  do {
    const { status, of } = await diagnosis(folder);
    assert.deepEqual([of["integrity"]?.status, of["indexes"]?.status, of["files"]?.status], [
      "ok",
      "ok",
      "ok",
    ], JSON.stringify({ status, of }));
  } while (++looks < 5);
  assert.ok(await writer.commits() > before, "it was not kept waiting");
});

Deno.test("[OP5] low disk space and a clock that was set back are reported", () => {
  const reserve = opsLimits.diskReserveBytes;
  assert.equal(assessSpace(reserve + 100, 100).status, "ok");
  assert.equal(assessSpace(reserve + 99, 100).status, "warn");
  assert.equal(assessSpace(reserve - 1, 0).status, "fail");
  const now = Date.UTC(2030, 0, 1);
  assert.equal(checkClock(now, now + 60_000).status, "ok");
  assert.equal(checkClock(now, now + 61_000).status, "warn");
  assert.equal(checkClock(now, now + 86_401_000).status, "fail");
  assert.equal(checkClock(now, null).status, "ok");
});

Deno.test("[OP6] a missing folder fails, and unknown options are a usage error", async () => {
  await using folder = await DataFolder.make();
  const around = { env: () => undefined, out: () => {}, err: () => {} };
  const command = (...args: string[]) =>
    runCommandLine([doctorCommand], { ...around, args: ["doctor", ...args] });
  assert.equal(await command("--data", folder.at("none")), exitCodes.failed);
  assert.equal(await command("--data", folder.path, "--storage", "nonsense"), exitCodes.usage);
  assert.equal(await command("--nonsense"), exitCodes.usage);
  const empty = await diagnosis(folder);
  assert.deepEqual([empty.code, empty.of["integrity"]?.status], [exitCodes.failed, "fail"]);
  assert.deepEqual(await folder.names(), [], "nothing was made");
});
