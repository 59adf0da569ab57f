/** The maintenance process: jobs, permissions and leftovers. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { openExport } from "../../mod/engine/mod.ts";
import type { Log } from "../../mod/kit/log.ts";
import { opsLimits } from "../../mod/ops/limits.ts";
import { readManifest } from "../../mod/ops/backups/archive/mod.ts";
import { BackupError } from "../../mod/ops/backups/backup_error.ts";
import { type Job, Maintenance, MaintenanceProcess } from "../../mod/ops/maintenance/mod.ts";
import { cancelRestore, RestoreError, stagedRestore } from "../../mod/ops/backups/restore/mod.ts";
import { commit, DataFolder } from "./support/data_folders.ts";
import { until } from "../support/waiting.ts";

const quiet: Log = () => {};
const everything = { withAux: true, withFiles: true, includeSecret: false };

async function filledFolder(): Promise<DataFolder> {
  const folder = await DataFolder.make();
  using writer = folder.openWriter();
  const blob = "ab".repeat(16);
  await folder.putBlob(blob, new Uint8Array(100));
  commit(writer, (tx) => tx.insert("_storage", { blob, size: 100 }));
  return folder;
}

/** IDs of this process's maintenance processes. */
async function maintenanceProcesses(): Promise<number[]> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "pid=,args=", "--ppid", String(Deno.pid)] })
    .output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) =>
    line.includes("maintenance/process.ts")
  )
    .map((line) => parseInt(line));
}

async function processEnds(pid: number): Promise<void> {
  await until(async () => !(await maintenanceProcesses()).includes(pid));
}

Deno.test("[BK16] backups and staging run in a separate process", async () => {
  await using folder = await filledFolder();
  await using maintenance = new Maintenance({ dataDir: folder.path, log: quiet });
  const out = folder.at("a.tar.zst");
  const summary = await maintenance.backup({ out, ...everything });
  assert.deepEqual([summary.ts, summary.parts], [1, ["database", "files"]]);
  assert.equal((await readManifest((await Deno.open(out)).readable)).ts, 1);
  const staged = await maintenance.stage({ archive: out, source: "mine" });
  assert.equal(staged.source, "mine");
  assert.deepEqual(await stagedRestore(folder.path), staged);
  assert.ok(await cancelRestore(folder.path));
});

Deno.test("[BK16] a folder reached through a link works as well", async () => {
  await using folder = await DataFolder.make();
  await Deno.mkdir(folder.at("real"));
  await Deno.symlink(folder.at("real"), folder.at("linked"));
  await using inner = await filledFolder();
  await Deno.copyFile(inner.at("data.db"), folder.at("real/data.db"));
  await using maintenance = new Maintenance({ dataDir: folder.at("linked"), log: quiet });
  const { parts } = await maintenance.backup({
    out: folder.at("linked/x.tar.zst"),
    ...everything,
    withAux: false,
  });
  assert.deepEqual(parts, ["database", "files"]);
  await maintenance.stage({ archive: folder.at("linked/x.tar.zst"), source: "x" });
});

Deno.test("[BK16] failures are reported as without the process", async () => {
  await using folder = await filledFolder();
  await using maintenance = new Maintenance({ dataDir: folder.path, log: quiet });
  await Deno.writeTextFile(folder.at("a.tar.zst"), "my own file, which is no archive");
  await assert.rejects(maintenance.backup({ out: folder.at("a.tar.zst"), ...everything }), (error) => {
    assert.ok(error instanceof BackupError);
    assert.match(error.message, /already exists/);
    return true;
  });
  await assert.rejects(maintenance.stage({ archive: folder.at("a.tar.zst"), source: "a" }), (error) => {
    assert.ok(error instanceof RestoreError);
    assert.equal(error.fault, "archive");
    assert.match(error.message, /Not a backup archive/);
    return true;
  });
});

Deno.test("[BK17] the process has no access outside of the data folder", async () => {
  await using folder = await filledFolder();
  await using elsewhere = await DataFolder.make();
  await using maintenance = new Maintenance({ dataDir: folder.path, log: quiet });
  await assert.rejects(
    maintenance.backup({ out: elsewhere.at("a.tar.zst"), ...everything }),
    /Cannot write ".*": this process has no permission to use it/,
  );
  assert.deepEqual(await elsewhere.names(), []);
  await Deno.writeTextFile(elsewhere.at("a.tar.zst"), "x");
  await assert.rejects(
    maintenance.stage({ archive: elsewhere.at("a.tar.zst"), source: "a" }),
    /Requires read access/,
  );
});

/** A data folder whose backup with files is slow. */
async function slowFolder(): Promise<DataFolder> {
  const folder = await DataFolder.make();
  using writer = folder.openWriter();
  const blob = "ab".repeat(16);
  const size = 64_000_000;
  await folder.putBlob(blob, randomBytes(size));
  commit(writer, (tx) => tx.insert("_storage", { blob, size }));
  return folder;
}

/** Whether a file exists in a folder at any depth. */
async function hasFile(path: string): Promise<boolean> {
  try {
    for await (const { name, isFile } of Deno.readDir(path)) {
      if (isFile || await hasFile(join(path, name))) return true;
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return false;
}

/** Resolves when the work of a job has begun, or the job has ended. */
async function begins(job: Promise<unknown>, hasBegun: () => Promise<boolean>): Promise<void> {
  let hasEnded = false;
  job.finally(() => hasEnded = true).catch(() => {});
  await until(async () => hasEnded || await hasBegun(), { everyMs: 1 });
}

/** Removes a staged restore. */
async function unstage(folder: DataFolder): Promise<void> {
  await cancelRestore(folder.path);
  await Deno.remove(folder.at("restore-staged"), { recursive: true }).catch(() => {});
}

/** Attempts to end a job before it is done, which on a busy machine may be too late. */
const TRIES = 20;

Deno.test({
  name: "[BK18] a job whose process is killed fails, leaves nothing partial, and the next one is done",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using folder = await slowFolder();
    const names = await folder.names();
    await using maintenance = new Maintenance({ dataDir: folder.path, log: quiet });
    const backup = (name: string) => maintenance.backup({ out: folder.at(name), ...everything });
    const kill = async () => {
      const [pid = 0] = await maintenanceProcesses();
      Deno.kill(pid, "SIGKILL");
    };
    const isKilled = /exited before it had finished. Killed by SIGKILL/;

    /** Kills a job that runs, and returns its error. A job that was done before is undone and repeated. */
    const killed = async (
      start: () => Promise<unknown>,
      { hasBegun, undo }: { hasBegun: () => Promise<boolean>; undo: () => Promise<unknown> },
    ): Promise<unknown> => {
      for (let tries = 0; tries < TRIES; tries++) {
        const job = start().then(() => null, (error) => error);
        await begins(job, hasBegun);
        await kill();
        const error = await job;
        if (error !== null) return error;
        await undo();
      }
      assert.fail("each time it was done before the kill");
    };

    let next: Promise<unknown> = Promise.resolve();
    const startBackups = () => {
      const doomed = backup("doomed.tar.zst");
      next = backup("next.tar.zst");
      next.catch(() => {});
      return doomed;
    };
    const doomedBackup = await killed(startBackups, {
      hasBegun: () => hasFile(folder.at("backup-work")),
      undo: async () => {
        await next.catch(() => {});
        for (const name of ["doomed", "next"]) {
          await Deno.remove(folder.at(`${name}.tar.zst`)).catch(() => {});
        }
      },
    });
    assert.match(String(doomedBackup), isKilled);
    await next;
    const after = [...names, "next.tar.zst"].sort();
    assert.deepEqual(await folder.names(), after);

    const archive = folder.at("next.tar.zst");
    const error = await killed(() => maintenance.stage({ archive, source: "doomed" }), {
      hasBegun: () => hasFile(folder.at("restore-staged")),
      undo: () => unstage(folder),
    });
    assert.ok(error instanceof RestoreError && isKilled.test(error.message), String(error));
    assert.equal(error.fault, "server");
    assert.deepEqual(await folder.names(), after);

    const stageNext = () => maintenance.stage({ archive, source: "next" });
    const stagedNames = () => Array.fromAsync(Deno.readDir(folder.at("restore-staged")));
    let staged = await stageNext();
    const again = await killed(() => maintenance.stage({ archive, source: "again" }), {
      hasBegun: async () => (await stagedNames()).length >= 3,
      undo: async () => staged = await stageNext(),
    });
    assert.match(String(again), isKilled);
    assert.deepEqual(await stagedRestore(folder.path), staged);
    assert.equal((await stagedNames()).length, 2);
  },
});

Deno.test("[BK18] without its owner the process aborts the job and cleans up before it exits", async () => {
  await using folder = await slowFolder();
  const archive = folder.at("a.tar.zst");
  {
    await using maintenance = new Maintenance({ dataDir: folder.path, log: quiet });
    await maintenance.backup({ out: archive, ...everything });
  }
  const names = await folder.names();
  const dataDir = folder.path;
  const jobs: readonly [Job, string][] = [
    [{ kind: "backup", options: { dataDir, out: folder.at("b.tar.zst"), ...everything } }, "backup-work"],
    [{ kind: "stage", options: { dataDir, archive, source: "a" } }, "restore-staged"],
  ];
  for (const [job, workFolder] of jobs) {
    for (let tries = 0, isDone = true; isDone; tries++) {
      assert.ok(tries < TRIES, "each time it was done before its owner ended");
      await unstage(folder);
      await Deno.remove(folder.at("b.tar.zst")).catch(() => {});
      const process = await MaintenanceProcess.start(dataDir);
      const answer = process.run(job);
      await begins(answer, () => hasFile(folder.at(workFolder)));
      await process.close();
      const result = await answer.catch(() => null);
      isDone = result?.ok === true;
    }
    assert.deepEqual(await folder.names(), names);
  }
});

Deno.test({
  name: "[BK18] the process ends after some idle time, and with its owner",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using folder = await filledFolder();
    const maintenance = new Maintenance({ dataDir: folder.path, log: quiet, idleMs: 1 });
    assert.deepEqual(await maintenanceProcesses(), []);
    await maintenance.backup({ out: folder.at("a.tar.zst"), ...everything });
    for (const pid of await maintenanceProcesses()) await processEnds(pid);
    const ends = [
      maintenance.backup({ out: folder.at("b.tar.zst"), ...everything }),
      maintenance.backup({ out: folder.at("c.tar.zst"), ...everything }),
    ].map((job) => assert.rejects(job, { code: "unavailable" }));
    await maintenance[Symbol.asyncDispose]();
    await Promise.all(ends);
    assert.deepEqual(await maintenanceProcesses(), []);
    await assert.rejects(maintenance.backup({ out: folder.at("d.tar.zst"), ...everything }), {
      code: "unavailable",
    });
    assert.ok(!(await folder.names()).some((name) => /^[bcd]\.tar|backup-work/.test(name)));
  },
});

Deno.test("[BK18] the queue of jobs is limited", async () => {
  await using folder = await filledFolder();
  await using maintenance = new Maintenance({ dataDir: folder.path, log: quiet });
  const jobs = Array.from(
    { length: opsLimits.maintenanceJobsMax },
    (_, job) => maintenance.backup({ out: folder.at(`${job}.tar.zst`), ...everything }),
  );
  await assert.rejects(maintenance.backup({ out: folder.at("more.tar.zst"), ...everything }), {
    code: "overloaded",
  });
  const done = await Promise.all(jobs);
  assert.equal(done.length, opsLimits.maintenanceJobsMax);
  using snapshot = openExport(folder.at("data.db"));
  assert.ok(done.every(({ ts }) => ts === snapshot.ts));
});
