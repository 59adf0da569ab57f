/**
 * The server as it is shipped, which starts in three quarters of the processor time: what its processes load is in a few
 * files instead of hundreds (`mod/build/bundles.ts`). `tests/run.ts` makes it for most files, and `Child` starts it where a
 * test starts `main.ts` or `cli.ts`; permissions, import maps and all other files are those of the project.
 */
import * as esbuild from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeBundles } from "../../mod/build/payload.ts";
import { makeBundles } from "../../mod/build/bundles.ts";
import { copyTree } from "../../mod/npm/build/copy_tree.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
/** The same place each time: what the runtime keeps of modules is by their paths. */
const program = join(repository, "dist/test_program");

/** The parts of the project that the server needs. */
const PARTS = ["mod", "dashboard/public", "docs", "examples/chat"];
const FILES = [
  ...["main.ts", "cli.ts", "LICENSE"],
  ...["deno.json", "deno.lock", "deno.serve.json", "deno.serve.lock"],
];

/** Copies the server and puts bundles into the places of its entries. Gives the folder. */
export async function makeProgram(): Promise<string> {
  await Deno.remove(program, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  for (const part of PARTS) {
    await copyTree(join(repository, part), join(program, part), (path) => path !== ".bundles/");
  }
  for (const file of FILES) await Deno.copyFile(join(repository, file), join(program, file));
  try {
    await writeBundles(program, await makeBundles());
  } finally {
    await esbuild.stop();
  }
  return program;
}
