/** The server in the package: bundled sources, and npm packages laid out as Deno's cache. */
import { join } from "node:path";
import { ENTRIES, nativeIds, writeBundles } from "../../build/payload.ts";
import { makeBundles } from "../../build/bundles.ts";
import { neededPackages, productionConfig } from "../../build/production_config.ts";
import { registryFolder } from "../../build/self_extractor.ts";
import { copyTree, projectDir } from "./copy_tree.ts";
import { writePack } from "./server_pack.ts";

/** Project files the server needs. */
const PARTS = ["mod", "dashboard/public", "docs", "examples/chat/functions", "examples/chat/public"];
/** Build tools are not needed in the package. */
const NOT_SERVED = /^(?:build|npm|client\/build|\.bundles)\/$|\.md$/;
/** Files that Deno loads from a package; others are omitted. */
const LOADED = /\/$|\.(?:[cm]?js|json|wasm)$|(?:^|\/)LICEN[CS]E/i;
/** Folders with alternative builds that are never loaded. */
const NOT_LOADED = /(?:^|\/)(?:dist-es|dist-types|docs|tests?|benchmarks?)\/$|^dist\/(?:cjs|types)\/$/;

/** Writes `server.pack` into the package, which contains `app/` and `cache/`. Returns its id. */
export async function writeServer(packageFolder: string): Promise<string> {
  const folder = join(packageFolder, ".server");
  await collect(folder);
  const id = await writePack(folder, join(packageFolder, "server.pack"));
  await Deno.remove(folder, { recursive: true });
  return id;
}

async function collect(folder: string): Promise<void> {
  const app = join(folder, "app");
  for (const part of PARTS) {
    await copyTree(
      join(projectDir, part),
      join(app, part),
      (path) => part === "docs" ? path !== "images/" : !NOT_SERVED.test(path),
    );
  }
  for (const file of ["main.ts", "cli.ts"]) await Deno.copyFile(join(projectDir, file), join(app, file));
  await writeBundles(app, await makeBundles());
  const lockFile = join(projectDir, "deno.lock");
  const native = await nativeIds();
  const packages = (await neededPackages(ENTRIES.map((entry) => join(projectDir, entry)), lockFile))
    .filter(({ id }) => !native.includes(id));
  const [project, lock] = await Promise.all([
    Deno.readTextFile(join(projectDir, "deno.json")),
    Deno.readTextFile(lockFile),
  ]);
  const ids = new Set([...packages.map(({ id }) => id), ...native]);
  const config = productionConfig({ project, lock, ids });
  await Deno.writeTextFile(join(app, "deno.json"), config.project);
  await Deno.writeTextFile(join(app, "deno.lock"), config.lock);
  for (const { folder: source, subfolder } of packages) {
    await copyTree(source, join(folder, "cache/npm", registryFolder, subfolder), isLoaded);
  }
}

function isLoaded(path: string): boolean {
  return LOADED.test(path) && !NOT_LOADED.test(path);
}
