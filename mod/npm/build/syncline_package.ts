/** Builds the package `syncline`: the modules that apps import, the command, and the server with its packages. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeDeclarations } from "../../client/build/declarations.ts";
import { writeModules } from "../../client/build/javascript.ts";
import { ENTRIES } from "../../client/build/package_files.ts";
import { synclineManifest } from "./manifests.ts";
import { writeProgram } from "./node_program.ts";
import { copyTree, projectDir } from "./copy_tree.ts";
import { writeServer } from "./server_files.ts";

/** Exports of the package, and their modules relative to the entries of the client's package. */
const entries = { ...ENTRIES, test: "../../testing/node/mod.ts" };

/** Writes the package into a new folder. */
export async function writeSynclinePackage(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  await writeModules(folder, entries);
  await writeDeclarations(folder, entries);
  const server = await writeServer(folder);
  await writeProgram(folder, { name: "syncline", entry: "syncline.ts", server });
  // `syncline init` copies these into an existing project.
  await copyTree(join(projectDir, "templates"), join(folder, "templates"));
  await Deno.writeTextFile(join(folder, "package.json"), await synclineManifest(Object.keys(entries)));
  await Deno.copyFile(fileURLToPath(new URL("readme.md", import.meta.url)), join(folder, "README.md"));
  for (const file of ["LICENSE", "CHANGELOG.md"]) {
    await Deno.copyFile(join(projectDir, file), join(folder, file));
  }
}
