/** The single file, built once for the tests of a process, and the archive in it. */
import assert from "node:assert/strict";
import type { PayloadName } from "../../../mod/build/self_extractor.ts";
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { singleFileHead } from "../../../mod/build/self_extractor.ts";
import { shell } from "../../../mod/build/payload.ts";
import { onPath } from "../../support/services.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { Machine, projectDir } from "./machine.ts";

/** The head of the file is shorter. */
const HEAD_BYTES = 16_384;

let folder: TempFolder | null = null;
let built: Promise<string> | null = null;

/** Its path. Others use it, too. */
export function singleFile(): Promise<string> {
  return built ??= build(folder = new TempFolder());
}

async function build({ path }: TempFolder): Promise<string> {
  const file = `${path}/syncline`;
  // Compresses less than the build requires, in a third of the time.
  await Deno.mkdir(`${path}/bin`);
  await Deno.writeTextFile(`${path}/bin/gzip`, `#!/bin/sh\nexec ${onPath("gzip")} -1\n`, { mode: 0o755 });
  const { success, stderr } = await new Deno.Command("deno", {
    args: ["task", "build:single", file],
    cwd: projectDir,
    env: { PATH: `${path}/bin:${Deno.env.get("PATH")}` },
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return file;
}

/** A stand-in for the runtime that prints the start of the help text. */
const STAND_IN = "#!/bin/sh\necho 'Usage: syncline'\n";

/**
 * Writes an archive in the format of the build, with a stand-in for the server, so that unpacking takes little time. Tests of
 * unpacking, replacing and removing need no more.
 */
export async function writeSmallArchive(path: string): Promise<PayloadName> {
  await using work = await TempFolder.with({
    "deno": STAND_IN,
    "app/cli.ts": "// Not run.\n",
    "cache/npm/package.json": "{}",
    "complete": "",
  });
  await Deno.chmod(work.at("deno"), 0o755);
  // Most of the file is the archive, and the archive is not empty if it is cut in the middle.
  await Deno.writeFile(work.at("app/data"), randomBytes(200_000));
  await shell('tar -C "$1" -cf - deno app cache complete | gzip >"$2"', [work.path, path]);
  const id = createHash("sha256").update(await Deno.readFile(path)).digest("hex").slice(0, 32);
  return { id, version: "0.0.0" };
}

/** Writes a single file with the stand-in for the server. */
export async function writeSmallFile(path: string): Promise<void> {
  await using work = new TempFolder();
  const archive = join(work.path, "archive");
  const name = await writeSmallArchive(archive);
  await Deno.writeTextFile(path, singleFileHead(name), { mode: 0o755 });
  await Deno.writeFile(path, await Deno.readFile(archive), { append: true });
}

/** Writes the archive that the file contains and returns its kind. */
export async function archiveOf(file: string, path: string): Promise<PayloadName> {
  using from = await Deno.open(file);
  const bytes = new Uint8Array(HEAD_BYTES);
  await from.read(bytes);
  const head = new TextDecoder().decode(bytes);
  const found = (pattern: RegExp) => pattern.exec(head)?.[1] ?? assert.fail(`no ${pattern} in the head`);
  await from.seek(Number(found(/tail -c \+(\d+) /)) - 1, Deno.SeekMode.Start);
  await Deno.writeFile(path, from.readable);
  return { id: found(/^home="\$cache\/([0-9a-f]{32})"$/m), version: found(/^# Syncline (\S+)\. /m) };
}

let shared: Promise<Machine> | null = null;

/** A machine for tests that run the real server, which is unpacked into its home once. The app on it has no data yet. */
export async function sharedMachine(): Promise<Machine> {
  const machine = await (shared ??= Machine.make());
  await Deno.remove(`${machine.dir}/app/data`, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  return machine;
}

Deno.test.afterAll(async () => {
  await (await shared)?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});
