/** The command `backup` for operators: process, output, exit code, and the created file. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { programModule, projectDir } from "../support/processes/program_module.ts";
import { extractArchive, readManifest } from "../../mod/ops/backups/archive/mod.ts";
import { WorkFolder } from "../../mod/ops/backups/snapshot/work_folder.ts";
import { commit, ConstantWriter, DataFolder } from "../ops/support/data_folders.ts";
import { Commands, type Ran } from "../support/commands.ts";
import { retry, until } from "../support/waiting.ts";

const SUFFIX = ".syncline-partial";

const commands = Commands.with("backup");

function backup(folder: DataFolder, args: readonly string[]): Promise<Ran> {
  return commands.run(["backup", ...args], { cwd: folder.path });
}

/** One that signals are sent to. */
function start(folder: DataFolder, args: readonly string[]): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      `--config=${projectDir}/deno.json`,
      "-P=backup",
      programModule("cli.ts"),
    ]
      .concat("backup", args),
    cwd: folder.path,
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

async function ended(child: Deno.ChildProcess): Promise<Ran> {
  const { code, stdout, stderr } = await child.output();
  const [out = "", err = ""] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out, err };
}

/** A folder with a data folder whose database has at least this many bytes. */
async function filledFolder({ bytes }: { readonly bytes: number }): Promise<DataFolder> {
  const folder = await DataFolder.make();
  await Deno.mkdir(folder.at("data"));
  await using inner = await DataFolder.make();
  {
    using writer = inner.openWriter();
    commit(writer, (tx) => tx.insert("_storage", { blob: "ab".repeat(16), size: 3 }));
    for (let written = 0; written < bytes; written += 1_000_000) {
      commit(writer, (tx) => tx.insert("notes", { text: randomBytes(500_000).toString("hex") }));
    }
  }
  await Deno.rename(inner.at("data.db"), folder.at("data/data.db"));
  await Deno.writeTextFile(folder.at("data/auth_secret.key"), "secret");
  return folder;
}

Deno.test("[BK19] [OP3] it prints content, size and date of the backup, and warns of the key and of omitted files", async () => {
  await using folder = await filledFolder({ bytes: 0 });
  const plain = await backup(folder, []);
  assert.equal(plain.code, 0, plain.err);
  const [name = "", ...others] = (await folder.names()).filter((name) => name !== "data");
  assert.match(name, /^backup-\d{8}T\d{6}Z\.tar\.zst$/);
  assert.deepEqual(others, []);
  const { size } = await Deno.stat(folder.at(name));
  assert.match(plain.out, /^Backed up the database as of ts 1, \d{4}-/);
  assert.ok(plain.out.includes(`${name}, ${size} bytes`), plain.out);
  assert.doesNotMatch(plain.out, /secret|Not included/);
  assert.match(plain.err, /^Copying the database\nPacking, [\d.]+ KiB\n/, "each step is shown");

  const all = await backup(folder, [
    ...["--data", "data", "--out", "all.tar.zst"],
    ...["--with-aux", "--with-files", "--include-secret"],
  ]);
  assert.equal(all.code, 0, all.err);
  assert.match(all.out, /no execution log/);
  assert.match(
    all.out,
    /Not included: 1 uploaded file whose contents.*Files in a bucket need a separate backup/,
  );
  assert.match(all.out, /It contains the secret key: anyone who has this file can sign in as any user/);
  const { parts } = await extractArchive(
    (await Deno.open(folder.at("all.tar.zst"))).readable,
    folder.at("all"),
  );
  assert.deepEqual([...parts].sort(), ["database", "files", "secret"]);
});

Deno.test("[BK19] a failure is one line, with exit code 1", async () => {
  await using folder = await filledFolder({ bytes: 0 });
  await Deno.writeTextFile(folder.at("mine.tar.zst"), "mine");
  for (
    const [args, message] of [
      [["--out", "mine.tar.zst"], /mine\.tar\.zst" already exists/],
      [["--data", "nowhere"], /Data folder "nowhere" not found/],
      [["--data", "."], /No database in/],
      [["--out", "no/where"], /Cannot write/],
      [["--out", "/dev/full"], /Cannot write "\/dev\/full": this process has no permission to use it/],
      [
        ["--out", "/proc/x.tar.zst"],
        /Cannot write "\/proc\/x\.tar\.zst": this process has no permission to use it/,
      ],
    ] as const
  ) {
    const { code, out, err } = await backup(folder, args);
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, message);
    assert.doesNotMatch(err, /\n\s+at /);
  }
  assert.deepEqual(await folder.names(), ["data", "mine.tar.zst"]);
});

Deno.test("[BK19] a server's process may write during a backup, which contains a single state", async () => {
  await using folder = await filledFolder({ bytes: 0 });
  await using _writer = await ConstantWriter.start(folder.at("data"));
  const { code, out, err } = await backup(folder, ["--with-files", "--out", "a.tar.zst"]);
  assert.equal(code, 0, err);
  const { ts } = await readManifest((await Deno.open(folder.at("a.tar.zst"))).readable);
  assert.ok(ts > 1 && out.includes(`as of ts ${ts}, `));
});

Deno.test("[BK14] it reports that it waits for another backup, and can be interrupted", async () => {
  await using folder = await filledFolder({ bytes: 0 });
  await using _other = await WorkFolder.acquire(folder.at("data"));
  const child = start(folder, ["--out", "a.tar.zst"]);
  const lines = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
  assert.match((await lines.read()).value ?? "", /Waiting for another backup of "\.\/data"/);
  child.kill("SIGINT");
  assert.match((await lines.read()).value ?? "", /Stopped by SIGINT: no backup was made/);
  assert.equal((await child.status).code, 1);
  await child.stdout.cancel();
  assert.deepEqual(await folder.names(), ["data"]);
});

Deno.test("[BK20] interrupted by SIGTERM or SIGKILL, it leaves no partial archive with the final name", async () => {
  await using folder = await filledFolder({ bytes: 40_000_000 });
  const isPacking = async () => {
    const partial = (await folder.names()).find((name) => name.endsWith(SUFFIX));
    return partial !== undefined &&
      ((await Deno.stat(folder.at(partial)).catch(() => null))?.size ?? 0) > 0;
  };
  // On a busy machine a backup may be complete before the signal arrives. Then another one is interrupted.
  for (const [signal, exitCode] of [["SIGTERM", 1], ["SIGKILL", 137]] as const) {
    await retry(async () => {
      const child = start(folder, ["--out", "a.tar.zst"]);
      const output = ended(child);
      let isOver = false;
      void output.then(() => isOver = true);
      await until(async () => isOver || await isPacking(), { everyMs: 1 });
      try {
        child.kill(signal);
      } catch {
        // It has ended.
      }
      const { code, err } = await output;
      if ((await folder.names()).includes("a.tar.zst")) {
        await readManifest((await Deno.open(folder.at("a.tar.zst"))).readable);
        await Deno.remove(folder.at("a.tar.zst"));
        return false;
      }
      assert.equal(code, exitCode, err);
      if (signal === "SIGTERM") {
        assert.match(err, /Stopped by SIGTERM: no backup was made/);
        assert.deepEqual(await folder.names(), ["data"]);
      }
      return true;
    }, { what: `a backup is interrupted by ${signal}` });
  }
  // The next one cleans up.
  const again = await backup(folder, ["--out", "a.tar.zst"]);
  assert.equal(again.code, 0, again.err);
  assert.deepEqual(await folder.names(), ["a.tar.zst", "data"]);
  const inside = await Array.fromAsync(Deno.readDir(folder.at("data")), ({ name }) => name);
  assert.ok(!inside.includes("backup-work"), inside.join());
});
