/**
 * The server's modules as a few files: a process that loads hundreds of them spends more on finding and reading than on
 * running them. Run by itself, it prints what it made, for builds that may not start the bundler.
 */
import * as esbuild from "esbuild";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type BundledFile, bundleFolder } from "./bundled_files.ts";

const projectDir = fileURLToPath(new URL("../../", import.meta.url));
/** The root of the program from where the files stand. */
const ROOT = "../../";

/** Modules that processes begin with: those of a server have much in common, and load parts of it late. */
const SERVER = ["main.ts", "cli.ts", "mod/server/workers/main.ts"];
/** Each of these has what it needs for itself. */
const HELPERS = [
  "mod/ops/backups/scheduled/folder_process.ts",
  "mod/ops/log/process/process.ts",
  "mod/ops/maintenance/process.ts",
  "mod/ops/replication/process/main.ts",
  "mod/storage/thumbnails/process.ts",
];
/** One file each, with nothing left to load when app code runs. */
const ISOLATES = ["mod/server/isolate_entry.ts", "mod/functions/isolate/main.ts"];
/** What of the program is in bundles. */
export const ENTRIES: readonly string[] = [...SERVER, ...HELPERS, ...ISOLATES];

/** Builds them. Whoever is done with the bundler ends it: `esbuild.stop()`. */
export async function makeBundles(): Promise<BundledFile[]> {
  const built = await Promise.all([
    bundled(SERVER, { late: true }),
    ...HELPERS.map((entry) => bundled([entry], { late: true })),
    ...ISOLATES.map((entry) => bundled([entry], { late: false })),
  ]);
  // Entries stay where they are looked for. The runtime takes longer for a large file of TypeScript.
  const shims = ENTRIES.map((entry) => ({
    path: entry,
    text: `import ${JSON.stringify(address(dirname(entry), `${bundleFolder}/${nameOf(entry)}.js`))};\n`,
  }));
  return [...built.flat(), ...shims];
}

/** `late`: what is imported while a process runs stays a file of its own. */
async function bundled(
  entries: readonly string[],
  { late }: { readonly late: boolean },
): Promise<BundledFile[]> {
  const { outputFiles } = await esbuild.build({
    absWorkingDir: projectDir,
    entryPoints: entries.map((entry) => ({ in: join(projectDir, entry), out: nameOf(entry) })),
    outdir: join(projectDir, bundleFolder),
    chunkNames: "[hash]",
    bundle: true,
    write: false,
    splitting: late,
    format: "esm",
    platform: "neutral",
    target: "esnext",
    // Lines stay: what is told of a fault is found in the sources by them.
    minifySyntax: true,
    keepNames: true,
    logLevel: "error",
    plugins: [{
      name: "places",
      setup(build) {
        // Packages, and modules of the runtime.
        build.onResolve({ filter: /^[^./]/ }, ({ path }) => ({ path, external: true }));
        build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
          const place = relative(projectDir, path);
          const text = await Deno.readTextFile(path);
          return { contents: placed(text, { place, begins: entries.includes(place) }), loader: "ts" };
        });
      },
    }],
  });
  return outputFiles.map(({ path, text }) => ({ path: relative(projectDir, path), text }));
}

/** The text of a module that knows where it would stand, and whether the process begins with it. */
function placed(
  text: string,
  { place, begins }: { readonly place: string; readonly begins: boolean },
): string {
  const url = `new URL(${JSON.stringify(ROOT + place)}, import.meta.url).href`;
  return text
    .replaceAll("import.meta.main", String(begins))
    .replaceAll(/import\.meta\.url\b/g, url);
}

/** A name for an entry among the files of all. */
function nameOf(entry: string): string {
  return entry.replace(/\.ts$/, "").replaceAll("/", "_");
}

/** How a module in a folder names a file. */
function address(folder: string, file: string): string {
  const path = relative(folder, file);
  return path.startsWith(".") ? path : `./${path}`;
}

if (import.meta.main) {
  const text = JSON.stringify(await makeBundles());
  await esbuild.stop();
  await new Blob([text]).stream().pipeTo(Deno.stdout.writable);
}
