/** `deno task build:npm`: writes the npm packages `dist/npm/syncline` and `dist/npm/create-syncline`. */
import * as esbuild from "esbuild";
import { fileURLToPath } from "node:url";
import { refuseOtherKind, runBuild } from "../../build/output_file.ts";
import { writeCreatePackage } from "./create_package.ts";
import { writeSynclinePackage } from "./syncline_package.ts";

const OUTPUT = fileURLToPath(new URL("../../../dist/npm", import.meta.url));

/** Writes both packages into a folder, removing its previous contents. */
export async function buildPackages(folder: string): Promise<void> {
  await refuseOtherKind(folder, "folder");
  // Files of an earlier build must not be published.
  await Deno.remove(folder, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  await writeSynclinePackage(`${folder}/syncline`);
  await writeCreatePackage(`${folder}/create-syncline`);
}

if (import.meta.main) {
  try {
    await runBuild(() => buildPackages(OUTPUT));
    // deno-lint-ignore no-console
    console.log(`${OUTPUT}/syncline and ${OUTPUT}/create-syncline`);
  } finally {
    await esbuild.stop();
  }
}
