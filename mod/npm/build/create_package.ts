/** Builds the package `create-syncline`, which `npm create syncline` runs: the templates and the program that copies them. */
import { join } from "node:path";
import { createManifest } from "./manifests.ts";
import { writeProgram } from "./node_program.ts";
import { copyTree, projectDir } from "./copy_tree.ts";

/** Writes the package into a new folder. */
export async function writeCreatePackage(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  await writeProgram(folder, { name: "create-syncline", entry: "create.ts" });
  await copyTree(join(projectDir, "templates"), join(folder, "templates"));
  await Deno.writeTextFile(join(folder, "package.json"), await createManifest());
  const readme = "# create-syncline\n\n`npm create syncline@latest my-app` creates a new Syncline app.\n";
  await Deno.writeTextFile(join(folder, "README.md"), readme);
  for (const file of ["LICENSE", "CHANGELOG.md"]) {
    await Deno.copyFile(join(projectDir, file), join(folder, file));
  }
}
