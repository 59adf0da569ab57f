/** The package `create-syncline`, which `npm create syncline` runs: the templates and what copies them. */
import { join } from "node:path";
import { createManifest } from "./manifests.ts";
import { writeProgram } from "./node_program.ts";
import { copyTree, projectDir } from "./copy_tree.ts";

/** Writes it into a folder that is not there yet. */
export async function writeCreatePackage(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  await writeProgram(folder, { name: "create-syncline", entry: "create.ts" });
  await copyTree(join(projectDir, "templates"), join(folder, "templates"));
  await Deno.writeTextFile(join(folder, "package.json"), createManifest());
  const readme = "# create-syncline\n\n`npm create syncline@latest my-app` makes a new app with Syncline.\n";
  await Deno.writeTextFile(join(folder, "README.md"), readme);
  for (const file of ["LICENSE", "CHANGELOG.md"]) {
    await Deno.copyFile(join(projectDir, file), join(folder, file));
  }
}
