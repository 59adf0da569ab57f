/** Builds do not replace existing output of the other kind. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { refuseOtherKind, writeOutput } from "../../mod/build/output_file.ts";
import { projectDir } from "./support/machine.ts";
import { TempFolder } from "../support/temp_folder.ts";

async function inTempDir(test: (dir: string) => Promise<void>): Promise<void> {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  await test(dir);
}

/** Runs a build that must refuse. Returns its error output. */
async function refusal(permissions: string, main: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", `-P=${permissions}`, main, ...args],
    cwd: dirname(main),
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const message = new TextDecoder().decode(stderr);
  assert.equal(code, 1, message);
  assert.equal(new TextDecoder().decode(stdout), "");
  return message;
}

Deno.test("a file that is written replaces the one before it", () =>
  inTempDir(async (dir) => {
    const target = join(dir, "made", "file");
    for (const text of ["first", "second"]) {
      await writeOutput(target, ({ file }) => Deno.writeTextFile(file, text));
      assert.equal(await Deno.readTextFile(target), text);
    }
    assert.equal((await Array.fromAsync(Deno.readDir(dirname(target)))).length, 1);
  }));

for (const build of ["single_file", "compiled"]) {
  Deno.test(`a folder is not replaced where ${build}.ts is to write a file`, () =>
    inTempDir(async (dir) => {
      const target = join(dir, "syncline");
      await Deno.mkdir(target);
      assert.equal(
        await refusal("buildServer", join(projectDir, `mod/build/${build}.ts`), target),
        `Cannot write the file ${target}: a folder with that name exists. Move it away or remove it.\n`,
      );
      assert.deepEqual((await Array.fromAsync(Deno.readDir(dir))).map(({ name }) => name), ["syncline"]);
    }));
}

Deno.test("a file is not replaced where a folder will be written", () =>
  inTempDir(async (dir) => {
    const target = join(dir, "npm");
    await Deno.writeTextFile(target, "kept");
    await assert.rejects(refuseOtherKind(target, "folder"), {
      name: "RefusedTarget",
      message: `Cannot write the folder ${target}: a file with that name exists. Move it away or remove it.`,
    });
  }));
