/** Restores as operators see them: real servers, the command, its output and exit codes. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createBackup } from "../../../mod/ops/backups/backup.ts";
import { stagedRestore, stageRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { Child } from "../../support/processes/child.ts";
import { programModule, projectDir } from "../../support/processes/program_module.ts";
import { Commands } from "../../support/commands.ts";
import { filesOf, TemporaryFolder } from "./support.ts";

const KILLED_RESTORE = fileURLToPath(new URL("./support/killed_restore.ts", import.meta.url));

const commands = Commands.with("restore");

const SCHEMA = `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }).index("by_text", ["text"]) });
`;
const NOTES = `
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const list = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("notes").collect()).map((note) => note.text),
});
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
`;

class Served implements AsyncDisposable {
  readonly child: Child;
  readonly #url: string;

  constructor(child: Child, url: string) {
    this.child = child;
    this.#url = url;
  }

  async add(text: string): Promise<void> {
    assert.equal((await this.#call("mutation", { path: "notes:add", args: { text } })).status, "success");
  }

  async notes(): Promise<unknown> {
    return (await this.#call("query", { path: "notes:list", args: {} })).value;
  }

  async #call(kind: string, body: unknown): Promise<{ readonly status: string; readonly value: unknown }> {
    const response = await fetch(`${this.#url}/api/${kind}`, { method: "POST", body: JSON.stringify(body) });
    return await response.json();
  }

  async end(signal: Deno.Signal): Promise<void> {
    Deno.kill(this.child.pid, signal);
    await this.child.exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.child[Symbol.asyncDispose]();
  }
}

class Place implements AsyncDisposable {
  readonly #folder = new TemporaryFolder();
  readonly path = this.#folder.path;
  readonly dataDir = join(this.path, "data");

  async serve(): Promise<Served> {
    const child = new Child({ args: this.#serveArgs() });
    try {
      const [url] = await child.line(/http:\/\/127\.0\.0\.1:\d+/);
      return new Served(child, url);
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts a server that is expected to exit. */
  failingServe() {
    return this.#run(this.#serveArgs());
  }

  restore(...args: readonly string[]) {
    return commands.run(["restore", ...args, "--data", this.dataDir]);
  }

  /** Data folder of a killed server: see `Original`. Returns the path of the backup. */
  async withBackup({ includeSecret = false } = {}): Promise<string> {
    await copyTree(originals.path, this.path);
    return join(this.path, includeSecret ? "with_secret.tar.zst" : "one.tar.zst");
  }

  async kept(): Promise<string[]> {
    const names = [...(await Array.fromAsync(Deno.readDir(this.dataDir)))].map(({ name }) => name);
    return names.filter((name) => name.startsWith("pre-restore-"));
  }

  #serveArgs(): string[] {
    return [
      ...["run", "--quiet", "--no-prompt", "-P=serve", programModule("main.ts"), "--port", "0"],
      ...["--data", this.dataDir, "--functions", join(this.path, "functions")],
    ];
  }

  async #run(args: readonly string[]) {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [...args],
      cwd: projectDir,
      env: { NO_COLOR: "1" },
    }).output();
    const decoder = new TextDecoder();
    return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#folder[Symbol.asyncDispose]();
  }
}

const BOTH = ["in the backup", "after it"];

/** An app and its data folder with one note before the backups and one after, after `kill -9`. */
const originals = new Place();
Deno.test.beforeAll(async () => {
  await Deno.mkdir(join(originals.path, "functions"));
  await Deno.writeTextFile(join(originals.path, "functions", "schema.ts"), SCHEMA);
  await Deno.writeTextFile(join(originals.path, "functions", "notes.ts"), NOTES);
  await using server = await originals.serve();
  await server.add("in the backup");
  for (const [name, includeSecret] of [["one", false], ["with_secret", true]] as const) {
    const out = join(originals.path, `${name}.tar.zst`);
    const { dataDir } = originals;
    await createBackup({ dataDir, out, withAux: false, withFiles: false, includeSecret });
  }
  await server.add("after it");
  await server.end("SIGKILL");
});
Deno.test.afterAll(() => originals[Symbol.asyncDispose]());

async function copyTree(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory, isFile } of Deno.readDir(from)) {
    if (isDirectory) await copyTree(join(from, name), join(to, name));
    else if (isFile) await Deno.copyFile(join(from, name), join(to, name));
    else if ((await Deno.lstat(join(from, name))).isSymlink) {
      await Deno.symlink(await Deno.readLink(join(from, name)), join(to, name));
    }
  }
}

Deno.test("[RS10] [OP3] restore is rejected while a server runs, and restores the backup's state otherwise", async () => {
  await using place = new Place();
  const archive = await place.withBackup();
  await using first = await place.serve();
  const busy = await place.restore(archive);
  assert.equal(busy.code, 1);
  assert.match(busy.err, new RegExp(`process ${first.child.pid}\\) is using the data folder`));
  assert.deepEqual(await first.notes(), BOTH);
  await first.end("SIGKILL");
  const { code, out, err } = await place.restore(archive);
  assert.equal(code, 0, err);
  assert.match(err, /^Unpacking, [\d.]+ KiB\nChecking the database\n/m, "each step is reported");
  const [kept = ""] = await place.kept();
  assert.match(out, /Restored "one\.tar\.zst" of \d{4}-\d\d-\d\dT.* ts \d+, \d+ tables, \d+ documents/);
  assert.ok(out.includes(join(place.dataDir, kept)), out);
  assert.match(out, /contains no secret key\..*all users are signed out and encrypted settings/);
  assert.match(out, /contains no uploaded files\. Files in this folder or a bucket are kept/);
  await using second = await place.serve();
  assert.deepEqual(await second.notes(), ["in the backup"]);
  await second.add("and on");
  assert.deepEqual(await second.notes(), ["in the backup", "and on"]);
});

Deno.test("[RS10] invalid archives and arguments end with the reason and without changes", async () => {
  await using place = new Place();
  const archive = await place.withBackup();
  const cut = join(place.path, "cut.tar.zst");
  const bytes = await Deno.readFile(archive);
  await Deno.writeFile(cut, bytes.subarray(0, bytes.length >> 1));
  const before = await filesOf(place.dataDir);
  const cases: readonly [args: readonly string[], code: number, message: RegExp][] = [
    [[join(place.path, "none")], 1, /the file does not exist.*Nothing has changed/],
    [[place.path], 1, /is not a file/],
    [["/proc/1/environ"], 1, /this process has no permission to use it.*Nothing has changed/],
    [[cut], 1, /archive is (truncated|damaged).*Nothing has changed/],
    [[], 2, /Missing source: pass an archive/],
    [[archive, "--cancel"], 2, /cannot be combined/],
  ];
  for (const [args, code, message] of cases) {
    const result = await place.restore(...args);
    assert.equal(result.code, code, result.err);
    assert.match(result.err, message);
    assert.equal(result.out, "");
  }
  assert.deepEqual(await filesOf(place.dataDir), before);
});

Deno.test("[RS9] the command restores the secret key if the backup contains it", async () => {
  await using place = new Place();
  const archive = await place.withBackup({ includeSecret: true });
  const keyFile = join(place.dataDir, "auth_secret.key");
  const key = await Deno.readTextFile(keyFile);
  await Deno.writeTextFile(keyFile, "another key");
  await stageRestore({ dataDir: place.dataDir, archive, source: "earlier.tar.zst", withSecret: false });
  const { code, out, err } = await place.restore(archive);
  assert.equal(code, 0, err);
  assert.doesNotMatch(out, /secret key/);
  assert.match(out, /Dropped the staged restore of "earlier\.tar\.zst"/);
  assert.equal(await Deno.readTextFile(keyFile), key);
  const [kept = ""] = await place.kept();
  assert.equal(await Deno.readTextFile(join(place.dataDir, kept, "auth_secret.key")), "another key");
});

Deno.test("[RS6] a restore staged with a running server is applied and reported by the next start", async () => {
  await using place = new Place();
  const archive = await place.withBackup();
  await using first = await place.serve();
  const { dataDir } = place;
  await stageRestore({ dataDir, archive, source: "one.tar.zst", withSecret: false });
  await first.add("still the old one");
  await first.end("SIGTERM");
  await using second = await place.serve();
  assert.deepEqual(await second.notes(), ["in the backup"]);
  const [kept = ""] = await place.kept();
  await second.end("SIGTERM");
  assert.match(second.child.lastOutput, /INFO {2}Restored the backup "one\.tar\.zst" of \d{4}-/);
  assert.ok(
    second.child.lastOutput.includes(`replacedFilesAreIn=${join(dataDir, kept)}`),
    second.child.lastOutput,
  );
  await using third = await place.serve();
  assert.deepEqual(await third.notes(), ["in the backup"]);
});

Deno.test("[RS11] a staged restore is canceled while no server runs", async () => {
  await using place = new Place();
  assert.match((await place.restore("--cancel")).err, /Cannot use the data folder/);
  assert.match((await place.restore("none.tar.zst")).err, /the file does not exist\. Nothing has changed/);
  await assert.rejects(Deno.stat(place.dataDir), Deno.errors.NotFound);
  const archive = await place.withBackup();
  await using first = await place.serve();
  await stageRestore({ dataDir: place.dataDir, archive, source: "one.tar.zst", withSecret: false });
  assert.equal((await place.restore("--cancel")).code, 1);
  await first.end("SIGTERM");
  const { code, out } = await place.restore("--cancel");
  assert.deepEqual([code, out], [0, 'Cancelled the restore of "one.tar.zst". The data is unchanged.\n']);
  assert.match((await place.restore("--cancel")).out, /^No restore is staged/);
  await stageRestore({ dataDir: place.dataDir, archive, source: "one.tar.zst", withSecret: false });
  await Deno.writeTextFile(join(place.dataDir, "restore-staged/pending-restore.json"), "");
  assert.match((await place.restore("--cancel")).out, /^Cancelled the restore\. The data is unchanged/);
  await using second = await place.serve();
  assert.deepEqual(await second.notes(), [...BOTH]);
  assert.deepEqual(await place.kept(), []);
});

Deno.test("[RS12] a start that cannot apply a restore fails and explains how to cancel it", async () => {
  await using place = new Place();
  const archive = await place.withBackup();
  await stageRestore({ dataDir: place.dataDir, archive, source: "one.tar.zst", withSecret: false });
  const folder = join(place.dataDir, "restore-staged");
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) await Deno.remove(join(folder, name, "data.db"));
  }
  const { code, err } = await place.failingServe();
  assert.equal(code, 1);
  assert.match(
    err,
    /Cannot apply the restore staged in .*data\.db" is missing .*restore --cancel --data "/,
  );
  assert.equal((await place.restore("--cancel")).code, 0);
  await using second = await place.serve();
  assert.deepEqual(await second.notes(), BOTH);
});

Deno.test("[RS7] a restore whose process is killed is finished by the next command that uses the data folder", async () => {
  await using place = new Place();
  const archive = await place.withBackup();
  const { dataDir } = place;
  const kill = async (nth: number) => {
    await stageRestore({ dataDir, archive, source: "one.tar.zst", withSecret: false });
    const { signal } = await new Deno.Command(Deno.execPath(), {
      args: [..."run --quiet --no-prompt -P=test".split(" "), KILLED_RESTORE, dataDir, String(nth)],
      cwd: projectDir,
    }).output();
    assert.equal(signal, "SIGKILL");
  };
  // The old database is away and the new one missing, so the requested administrator exists in neither.
  await kill(4);
  await assert.rejects(Deno.stat(join(dataDir, "data.db")), Deno.errors.NotFound);
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", "-P=serve", programModule("cli.ts")],
      ...["admin", "list", "--data", dataDir],
    ],
    cwd: projectDir,
  }).output();
  assert.equal(code, 0);
  assert.equal(await stagedRestore(dataDir), null);
  await using second = await place.serve();
  assert.deepEqual(await second.notes(), ["in the backup"]);
  await second.add("on top");
  await second.end("SIGKILL");
  // Again, and this time it is undone.
  await kill(7);
  const cancelled = await place.restore("--cancel");
  assert.equal(cancelled.code, 0, cancelled.err);
  await using third = await place.serve();
  assert.deepEqual(await third.notes(), ["in the backup", "on top"]);
});
