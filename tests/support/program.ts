/**
 * The server in its shipped form, which starts with three quarters of the processor time, because its processes load a few
 * files instead of hundreds (`mod/build/bundles.ts`). `tests/run.ts` builds it, and `programModule` names its modules for
 * processes of `main.ts`, `cli.ts` and the commands. Permissions, import maps and all other files are those of the project.
 */
import * as esbuild from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeBundles } from "../../mod/build/payload.ts";
import { makeBundles } from "../../mod/build/bundles.ts";
import { copyTree } from "../../mod/npm/build/copy_tree.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
/** Always the same path, because the runtime caches modules by path. */
const program = join(repository, "dist/test_program");

/** Runs the commands of tests (`commands.ts`). */
const COMMANDS = "tests/support/command_process.ts";
/** The parts of the project that the server needs. */
const PARTS = ["mod", "dashboard/public", "docs", "examples/chat"];
const FILES = [
  ...["main.ts", "cli.ts", "LICENSE"],
  ...["deno.json", "deno.lock", "deno.serve.json", "deno.serve.lock"],
];

/** Copies the server and replaces its entry points with bundles. Returns the folder. */
export async function makeProgram(): Promise<string> {
  await Deno.remove(program, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  for (const part of PARTS) {
    await copyTree(join(repository, part), join(program, part), (path) => path !== ".bundles/");
  }
  for (const file of FILES) await Deno.copyFile(join(repository, file), join(program, file));
  try {
    await writeBundles(program, await makeBundles([COMMANDS]));
  } finally {
    await esbuild.stop();
  }
  return program;
}
