/** Scheduled backups of real servers with the real maintenance process. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { extractArchive } from "../../../mod/ops/backups/archive/mod.ts";
import { scheduledAt } from "../../../mod/ops/backups/scheduled/backup_target.ts";
import { StartError } from "../../../mod/config/start_error.ts";
import { startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { until } from "../../support/waiting.ts";

const MADE = "info Scheduled backup created";
const functions = {
  "notes.ts": `
import { untypedMutation } from "syncline/server";
export const add = untypedMutation({ args: {}, handler: () => "done" });
`,
};

async function scheduledIn(folder: string): Promise<string[]> {
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
  return names.filter((name) => scheduledAt(name) !== null).sort();
}

async function madeAtLeast({ logged }: TestServer, count: number): Promise<void> {
  await until(() => logged.filter((line) => line === MADE).length >= count, {
    what: () => `${count} backups are made; logged:\n${logged.join("\n")}`,
  });
}

Deno.test("[SB1] [SB5] a server makes backups at its interval, and keeps the configured number in addition to manual ones", async () => {
  const target = await Deno.makeTempDir();
  const byHand = "backup-20300101T000000Z-0123abcd.tar.zst";
  await Deno.writeTextFile(join(target, byHand), "made by hand");
  await using server = await startTestServer({
    functions,
    config: { backups: { everyMs: 1_000, keep: 2, to: { kind: "folder", path: target } } },
  });
  await madeAtLeast(server, 4);
  const { body } = await server.post("/api/mutation", { path: "notes:add", args: {} });
  assert.equal(body.value, "done");
  await server.logs("info Old scheduled backup deleted");
  await until(async () => (await scheduledIn(target)).length === 2);
  await server.restart(async () => {
    // The stop may interrupt a cycle after the new backup, before the old one is deleted.
    assert.ok((await scheduledIn(target)).length <= 3);
    assert.ok((await Deno.stat(join(target, byHand))).isFile);
    // The stop may kill the process that writes an archive. The next start removes what it wrote.
    const outgoing = await Array.fromAsync(
      Deno.readDir(join(server.dataDir, "outgoing")),
      ({ name }) => name,
    );
    assert.deepEqual(outgoing.filter((name) => !name.endsWith(".syncline-partial")), []);
  });
  await madeAtLeast(server, 5);
  const failures = server.logged.filter((line) => /^(warn|error)/.test(line));
  assert.deepEqual(failures, []);
  await server.restart(() => Deno.remove(target, { recursive: true }));
});

Deno.test("[SB3] [SB6] a missing target affects only backups, until it is back", async () => {
  const target = await Deno.makeTempDir();
  await using server = await startTestServer({
    functions,
    config: { backups: { everyMs: 1_000, keep: 2, to: { kind: "folder", path: target } } },
  });
  await madeAtLeast(server, 1);
  await Deno.rename(target, `${target}-away`);
  await server.logs("error Scheduled backup failed");
  const { body } = await server.post("/api/mutation", { path: "notes:add", args: {} });
  assert.equal(body.value, "done");
  await Deno.rename(`${target}-away`, target);
  await madeAtLeast(server, server.logged.filter((line) => line === MADE).length + 1);
  await server.restart(() => Deno.remove(target, { recursive: true }));
});

Deno.test("[SB6] an unwritable folder prevents the start with the reason", async () => {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  await Deno.writeTextFile(join(folder, "file"), "");
  const start = (path: string) =>
    startTestServer({
      functions,
      config: { backups: { everyMs: 1_000, keep: 2, to: { kind: "folder", path } } },
    });
  await assert.rejects(start(join(folder, "file")), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, /^Scheduled backups: Cannot open ".*file": /);
    return true;
  });
});

Deno.test("[SB7] a server process archives database and files, never the key, on any disk", async () => {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  const [dataDir, target] = [join(folder, "data"), join(folder, "elsewhere")];
  const flags = ["--backup-every", "15m", "--backup-to", target];
  await Deno.mkdir(join(dataDir, "storage/ab"), { recursive: true });
  const options = { dataDir, functions: "tests/storage/functions" };
  {
    // The first backup is made immediately, so a log must exist before.
    await using before = await ServerProcess.start(options);
    const isThere = () => Deno.stat(join(dataDir, "logs.db")).then(() => true, () => false);
    await until(isThere);
    await before.stop();
  }
  await using server = await ServerProcess.start({ ...options, flags });
  await until(async () => (await scheduledIn(target)).length !== 0);
  await server.stop();
  const [name = "", ...more] = await scheduledIn(target);
  assert.deepEqual(more, []);
  const archive = (await Deno.open(join(target, name))).readable;
  const { parts } = await extractArchive(archive, join(folder, "unpacked"));
  assert.deepEqual([...parts].sort(), ["database", "files", "log"]);
  const unpacked = await Array.fromAsync(Deno.readDir(join(folder, "unpacked")), ({ name }) => name);
  assert.ok(unpacked.includes("data.db") && !unpacked.includes("auth_secret.key"), unpacked.join());
});

Deno.test("[SB4] a killed process leaves no partial backup, and the next start makes it", async () => {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  const [dataDir, target] = [join(folder, "data"), join(folder, "elsewhere")];
  const flags = ["--backup-every", "15m", "--backup-to", target];
  const options = { dataDir, functions: "tests/storage/functions" };
  const named = async (dir: string) =>
    await Array.fromAsync(Deno.readDir(dir), ({ name }) => name).catch((): string[] => []);
  {
    // Something that takes a moment to compress.
    await using server = await ServerProcess.start(options);
    for (let at = 0; at < 6; at++) {
      const url = await server.call("mutation", "files:generate");
      const body = crypto.getRandomValues(new Uint8Array(65_536));
      const large = new Blob(Array.from({ length: 400 }, () => body));
      const response = await fetch(`http://127.0.0.1:${server.port}${url}`, {
        method: "POST",
        body: large,
      });
      assert.equal(response.status, 200, await response.text());
    }
  }
  const outgoing = join(dataDir, "outgoing");
  // On a busy machine a kill may be too late. Without its backups the next start makes one again.
  for (let tries = 0; tries === 0 || (await named(target)).length !== 0; tries++) {
    assert.ok(tries < 20, `after each kill a backup exists: ${await named(target)}`);
    for (const dir of [outgoing, target]) {
      for (const name of await named(dir)) await Deno.remove(join(dir, name), { recursive: true });
    }
    const killed = await ServerProcess.start({ ...options, flags });
    await until(async () => (await named(outgoing)).length + (await named(target)).length !== 0, {
      everyMs: 1,
    });
    await killed.kill();
  }
  await using server = await ServerProcess.start({ ...options, flags });
  await until(async () => (await scheduledIn(target)).length !== 0);
  await server.stop();
  const [name = "", ...more] = await named(target);
  assert.deepEqual(more, []);
  assert.deepEqual(await named(outgoing), []);
  await extractArchive((await Deno.open(join(target, name))).readable, join(folder, "unpacked"));
});
