/** `deno task build:npm`: writes the npm packages `dist/npm/syncline` and `dist/npm/create-syncline`. */
import * as esbuild from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { refuseOtherKind, runBuild } from "../../build/output_file.ts";
import { writeDeclarations } from "../../client/build/declarations.ts";
import { sizeOf, writeModules } from "../../client/build/javascript.ts";
import { BINDINGS, ENTRIES, SMALL_ENTRIES } from "../../client/build/package_files.ts";
import { copyTree, projectDir } from "./copy_tree.ts";
import { createManifest, synclineManifest } from "./manifests.ts";
import { writeConformance, writeProgram } from "./node_program.ts";
import { writeServer } from "./server_files.ts";

/** Writes the package into a new folder. */
async function writeCreatePackage(folder: string): Promise<void> {
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

/** Exports of the package, and their modules relative to the entries of the client's package. */
const entries = { ...ENTRIES, test: "../../testing/node/mod.ts" };

/** Writes the package into a new folder. */
async function writeSynclinePackage(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  await writeModules(folder, entries);
  await writeDeclarations(folder, entries);
  const server = await writeServer(folder);
  await writeProgram(folder, { name: "syncline", entry: "syncline.ts", server });
  await writeConformance(folder);
  await copyTree(join(projectDir, "mod/npm/conformance/scenarios"), join(folder, "conformance"));
  // `syncline init` copies these into an existing project.
  await copyTree(join(projectDir, "templates"), join(folder, "templates"));
  await Deno.writeTextFile(join(folder, "package.json"), await synclineManifest(Object.keys(entries)));
  await Deno.copyFile(fileURLToPath(new URL("readme.md", import.meta.url)), join(folder, "README.md"));
  for (const file of ["LICENSE", "CHANGELOG.md"]) {
    await Deno.copyFile(join(projectDir, file), join(folder, file));
  }
}

const OUTPUT = fileURLToPath(new URL("../../../dist/npm", import.meta.url));

const KIB = 1024;
/** Entries that add a feature to the client, and in `react/` to the hooks. */
const FEATURES = ["accounts", "presence", "streams"];

/** Prints the sizes of the package's parts for browsers, minified and gzipped. Returns whether they are within their limits. */
async function checkSizes(dir: string): Promise<boolean> {
  const core = await sizeOf(dir, ["client"]);
  const react = await sizeOf(dir, ["client", "react"]) - core;
  const fits = [
    report("syncline/client", core, 17 * KIB),
    report("syncline/react, additional", react, 5 * KIB),
  ];
  for (const name of FEATURES) {
    const feature = await sizeOf(dir, ["client", name]) - core;
    const hooks = await sizeOf(dir, ["client", "react", name, `react/${name}`]) - core - react - feature;
    fits.push(report(`syncline/${name}, additional`, feature, KIB));
    fits.push(report(`syncline/react/${name}, additional`, hooks, KIB));
  }
  for (const name of BINDINGS) {
    fits.push(report(`syncline/${name}, additional`, await sizeOf(dir, ["client", name]) - core, 2 * KIB));
  }
  for (const name of SMALL_ENTRIES) {
    fits.push(report(`syncline/${name}, additional`, await sizeOf(dir, ["client", name]) - core, KIB));
  }
  const used = ["client", "react", "accounts", "react/accounts"];
  const forms = await sizeOf(dir, [...used, "react/account-forms"]) - await sizeOf(dir, used);
  fits.push(report("syncline/react/account-forms, additional", forms, 8 * KIB));
  return fits.every((fit) => fit);
}

function report(part: string, bytes: number, bytesMax: number): boolean {
  const fits = bytes <= bytesMax;
  // deno-lint-ignore no-console
  console.log(`${part}: ${bytes} bytes gzipped, ${fits ? "within" : "OVER"} the limit of ${bytesMax}`);
  return fits;
}

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
    await runBuild(async () => {
      await buildPackages(OUTPUT);
      if (!await checkSizes(`${OUTPUT}/syncline`)) Deno.exitCode = 1;
      // deno-lint-ignore no-console
      console.log(`${OUTPUT}/syncline and ${OUTPUT}/create-syncline`);
    });
  } finally {
    await esbuild.stop();
  }
}
