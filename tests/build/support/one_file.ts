/** The single file, built once for the tests of a process, and the archive in it. */
import assert from "node:assert/strict";
import type { PayloadName } from "../../../mod/build/self_extractor.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { projectDir } from "./machine.ts";

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
  const { success, stderr } = await new Deno.Command("deno", {
    args: ["task", "build:single", file],
    cwd: projectDir,
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return file;
}

/** Writes the archive that it carries to a path, and says what it is. */
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

Deno.test.afterAll(() => folder?.[Symbol.asyncDispose]());
