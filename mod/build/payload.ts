/** The payload of the single-file and compiled server: the Deno runtime, sources, packages and the example. */
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSION as version } from "../config/version.ts";
import { neededPackages, productionConfig } from "./production_config.ts";
import { type PayloadName, registryFolder } from "./self_extractor.ts";

/** All files are in one folder, so the path to the root is the same for each. */
export const bundleFolder = "mod/bundles";

/** A file in the program folder: a new file, or the replacement of an entry module. */
export interface BundledFile {
  readonly path: string;
  readonly text: string;
}

export async function writeBundles(program: string, files: readonly BundledFile[]): Promise<void> {
  for (const { path, text } of files) {
    await Deno.mkdir(dirname(join(program, path)), { recursive: true });
    await Deno.writeTextFile(join(program, path), text);
  }
}

/** Runs a script with `values` as `$1`, `$2`, ... and additional variables. Throws an error with its output on failure. */
export async function shell(
  script: string,
  values: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { success, stderr } = await new Deno.Command("sh", {
    args: ["-ec", script, "sh", ...values],
    env: { ...env, NO_COLOR: "1" },
  }).output();
  if (!success) throw new Error(`Cannot build: ${new TextDecoder().decode(stderr)}`);
}

export const projectDir: string = fileURLToPath(new URL("../../", import.meta.url));
/** Project files the server needs. */
const PARTS = ["LICENSE", "main.ts", "cli.ts", "mod", "dashboard", "docs", "examples/chat"];
/** Entry modules of the server's processes. The first one covers the packages of the isolates. */
export const ENTRIES: readonly string[] = [
  "cli.ts",
  "mod/build/bundler_package.ts",
  "mod/storage/thumbnails/process.ts",
  "mod/ops/maintenance/process.ts",
  "mod/server/worker/main.ts",
];

/** Writes the compressed archive, using the empty folder `work` for temporary files. */
export async function writeArchive(
  archive: string,
  { work }: { readonly work: string },
): Promise<PayloadName> {
  await collect(work);
  // The last entry marks a complete archive.
  await shell('tar -C "$1" -cf - deno app cache complete | gzip -6 >"$2"', [work, archive]);
  await Deno.remove(work, { recursive: true });
  const hash = createHash("sha256");
  using file = await Deno.open(archive);
  for await (const part of file.readable) hash.update(part);
  return { id: hash.digest("hex").slice(0, 32), version };
}

async function collect(bundle: string): Promise<void> {
  await Deno.mkdir(join(bundle, "app/examples"), { recursive: true });
  await copy(Deno.execPath(), join(bundle, "deno"));
  for (const part of PARTS) await copy(join(projectDir, part), join(bundle, "app", part));
  await shell('rm -rf "$1"', [join(bundle, "app/mod/.bundles")]);
  await putBundles(join(bundle, "app"), join(bundle, "bundles.json"));
  const [project, lock] = await Promise.all(
    ["deno.json", "deno.lock"].map((name) => Deno.readTextFile(join(projectDir, name))),
  ) as [string, string];
  const entries = ENTRIES.map((entry) => join(projectDir, entry));
  const packages = await neededPackages(entries, join(projectDir, "deno.lock"));
  const config = productionConfig({ project, lock, ids: new Set(packages.map(({ id }) => id)) });
  await Deno.writeTextFile(join(bundle, "app/deno.json"), config.project);
  await Deno.writeTextFile(join(bundle, "app/deno.lock"), config.lock);
  for (const { folder, subfolder } of packages) {
    const copied = join(bundle, "cache/npm", registryFolder, subfolder);
    await Deno.mkdir(dirname(copied), { recursive: true });
    await copy(folder, copied);
  }
  await Deno.writeTextFile(join(bundle, "complete"), "");
}

/** Adds bundles to the program. The bundler runs in a separate process, because this build may not start it. */
async function putBundles(program: string, printed: string): Promise<void> {
  const config = join(projectDir, "deno.json");
  const script = join(projectDir, "mod/build/bundles.ts");
  await shell('"$1" run --quiet --no-prompt --config "$2" -P=buildClient "$3" >"$4"', [
    ...[Deno.execPath(), config, script, printed],
  ]);
  await writeBundles(program, JSON.parse(await Deno.readTextFile(printed)));
  await Deno.remove(printed);
}

async function copy(from: string, to: string): Promise<void> {
  await shell('cp -RL "$1" "$2"', [from, to]);
}

/** Lock file names of native packages for one platform, glibc only: the image library and the bundler. */
const NATIVE = /^(?:@img\/sharp-(?:libvips-)?|@esbuild\/)(?:linux|darwin|win32)-(?:x64|arm64)@/;

/** Lock file names of the native packages for all platforms. */
export async function nativeIds(): Promise<string[]> {
  const { npm } = JSON.parse(await Deno.readTextFile(join(projectDir, "deno.lock"))) as {
    readonly npm: Readonly<Record<string, unknown>>;
  };
  return Object.keys(npm).filter((id) => NATIVE.test(id));
}
